// SPDX-License-Identifier: Apache-2.0
#include "wire_vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "json_fields.h"
#include "vector_file.h"

namespace atp::conformance {

namespace {

using Bytes = std::vector<std::byte>;
using Lanes = std::vector<std::uint32_t>;
using wire::DecodeError;
using Json = nlohmann::ordered_json;

// Writes the field without the encoder of wire/packet.h, because the vectors check that encoder.
void put(Bytes& bytes, std::size_t offset, std::size_t width, std::uint64_t value) {
    for (std::size_t byte = 0; byte < width; ++byte) {
        bytes.at(offset + byte) = static_cast<std::byte>(value >> (8 * (width - 1 - byte)));
    }
}

Bytes to_bytes(const atp_header& header, const Lanes& lanes) {
    Bytes bytes(ATP_HEADER_BYTES + lanes.size() * ATP_LANE_BYTES);
    put(bytes, ATP_OFFSET_VERSION, 1, header.version);
    put(bytes, ATP_OFFSET_TYPE, 1, header.type);
    put(bytes, ATP_OFFSET_FLAGS, 2, header.flags);
    put(bytes, ATP_OFFSET_HOP, 1, header.hop);
    put(bytes, ATP_OFFSET_LANES, 1, header.lanes);
    put(bytes, ATP_OFFSET_WINDOW, 1, header.window_log2);
    put(bytes, ATP_OFFSET_SCALE, 1, header.scale);
    put(bytes, ATP_OFFSET_JOB, 4, header.job);
    put(bytes, ATP_OFFSET_CHANNEL, 2, header.channel);
    put(bytes, ATP_OFFSET_WORKER, 2, header.worker);
    put(bytes, ATP_OFFSET_TOKEN, 8, header.token);
    put(bytes, ATP_OFFSET_SEQ, 4, header.seq);
    put(bytes, ATP_OFFSET_INDEX, 4, header.index);
    put(bytes, ATP_OFFSET_ARGUMENT, 4, header.argument);
    put(bytes, ATP_OFFSET_PEER, 2, header.peer);
    put(bytes, ATP_OFFSET_SENDING, 1, header.sending);
    put(bytes, ATP_OFFSET_PART, 1, header.part);
    put(bytes, ATP_OFFSET_BITMAP0, 4, header.bitmap0);
    put(bytes, ATP_OFFSET_MASK0, 4, header.mask0);
    put(bytes, ATP_OFFSET_BITMAP1, 4, header.bitmap1);
    put(bytes, ATP_OFFSET_MASK1, 4, header.mask1);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        put(bytes, ATP_HEADER_BYTES + lane * ATP_LANE_BYTES, ATP_LANE_BYTES, lanes[lane]);
    }
    return bytes;
}

// Every field differs from every other and from 0, so that a decoder that exchanges two fields fails.
atp_header plain(atp_type type, std::uint8_t lanes) {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = static_cast<std::uint8_t>(type);
    header.hop = 1;
    header.lanes = lanes;
    header.window_log2 = 9;
    header.job = 0x01020304;
    header.channel = 0x0A0B;
    header.worker = 0x0203;
    header.token = 0x5EEDFACE01234567;
    header.seq = 0x11121314;
    header.index = 0x00012345;
    header.peer = 0x0607;
    header.sending = 0xA9;
    header.bitmap0 = 0x00000005;
    header.mask0 = 0x8000000F;
    header.bitmap1 = 0x00000010;
    header.mask1 = 0x000000F1;
    return header;
}

atp_header gradient() { return plain(ATP_TYPE_GRADIENT, ATP_INT32_LANES); }

atp_header short_gradient() {
    atp_header header = plain(ATP_TYPE_GRADIENT, ATP_INT16_LANES);
    header.scale = ATP_SCALE_ONE + 12;
    return header;
}

WireVector good(std::string description, atp_header header, Lanes lanes) {
    WireVector vector;
    vector.description = std::move(description);
    vector.bytes = to_bytes(header, lanes);
    vector.header = header;
    vector.lanes = std::move(lanes);
    return vector;
}

WireVector bad_bytes(DecodeError error, std::string description, Bytes bytes) {
    WireVector vector;
    vector.description = std::move(description);
    vector.bytes = std::move(bytes);
    vector.error = error;
    return vector;
}

WireVector bad(DecodeError error, std::string description, const atp_header& header, const Lanes& lanes) {
    return bad_bytes(error, std::move(description), to_bytes(header, lanes));
}

std::uint32_t float_lane(float value) { return std::bit_cast<std::uint32_t>(value); }

Lanes counting_lanes(std::size_t count) {
    Lanes lanes(count);
    for (std::size_t lane = 0; lane < count; ++lane) lanes[lane] = static_cast<std::uint32_t>(0x01000000 + lane);
    return lanes;
}

atp_header with_flags(atp_header header, std::uint16_t flags) {
    header.flags = flags;
    return header;
}

atp_header multicast_with_next_index() {
    atp_header header = plain(ATP_TYPE_ACK, ATP_FLOAT32_LANES);
    header.worker = ATP_WORKER_ALL;
    header.argument = 0x00054321;
    return header;
}

atp_header with_argument(atp_header header, std::uint32_t argument) {
    header.argument = argument;
    return header;
}

atp_header flush_of_level(std::uint8_t level) {
    atp_header header = plain(ATP_TYPE_FLUSH, ATP_DTYPE_NONE);
    header.hop = level;
    return header;
}

void append_types(std::vector<WireVector>& vectors) {
    vectors.push_back(good("a gradient of two members of one unit", gradient(), {1, 0xFFFFFFFF, 100000000}));
    vectors.push_back(
        good("the last fragment of a tensor, one lane, with its purpose", with_argument(gradient(), 0xC0DE), {7}));
    vectors.push_back(good("a float gradient", plain(ATP_TYPE_GRADIENT, ATP_FLOAT32_LANES),
                           {float_lane(1.0F), float_lane(-2.5F), 0x7F800000, 0xFFC00000}));
    vectors.push_back(good("an acknowledgement with a float sum for all workers, and the next index of its slot",
                           multicast_with_next_index(), {float_lane(0.5F), float_lane(-0.0F)}));
    vectors.push_back(good("an acknowledgement with an integer sum for one worker",
                           plain(ATP_TYPE_ACK, ATP_INT32_LANES), {0x7FFFFFFF, 0x80000000}));
    vectors.push_back(good("an acknowledgement with a plain sum",
                           with_flags(plain(ATP_TYPE_ACK, ATP_INT32_LANES), ATP_FLAG_PLAIN), {0x80000000, 5}));
    vectors.push_back(good("a gradient of 16-bit numbers, 1 and -1 in the first lane, at a scale of its own",
                           short_gradient(), {0x0001FFFF, 0x7FFF8001}));
    vectors.push_back(good("an acknowledgement of 16-bit numbers", plain(ATP_TYPE_ACK, ATP_INT16_LANES), {0x00020000}));
    vectors.push_back(good("a request to send integers again", plain(ATP_TYPE_NACK, ATP_DTYPE_INT32), {}));
    vectors.push_back(good("a request for the floats", plain(ATP_TYPE_NACK, ATP_DTYPE_FLOAT32), {}));
    vectors.push_back(good("a probe", plain(ATP_TYPE_PROBE, ATP_DTYPE_NONE), {}));
    vectors.push_back(good("a wait", plain(ATP_TYPE_WAIT, ATP_DTYPE_NONE), {}));
    vectors.push_back(good("a wait that says that workers mean different things",
                           with_argument(plain(ATP_TYPE_WAIT, ATP_DTYPE_NONE), ATP_WAIT_MISMATCHED), {}));
    vectors.push_back(good("a flush of level 0", flush_of_level(0), {}));
    vectors.push_back(good("a flush of level 1", flush_of_level(1), {}));
    vectors.push_back(good("a ready", with_argument(plain(ATP_TYPE_READY, ATP_DTYPE_NONE), 0x11121320), {}));
    vectors.push_back(good("two acknowledgements without lanes", plain(ATP_TYPE_ACK_LIST, ATP_DTYPE_NONE),
                           {0x31323334, 0x41424344, 0x02800102, 0x61620000}));
    vectors.push_back(good("sixteen acknowledgements without lanes", plain(ATP_TYPE_ACK_LIST, ATP_DTYPE_NONE),
                           Lanes(ATP_MAX_ACK_LIST_LANES, 0x01020304)));
    vectors.push_back(good("a probe, padded", plain(ATP_TYPE_PROBE, ATP_DTYPE_NONE), {0, 0xFFFFFFFF, 0}));
    vectors.push_back(good("an acknowledgement without lanes, for workers that are not the owner",
                           plain(ATP_TYPE_ACK, ATP_DTYPE_NONE), {}));
    vectors.push_back(good("an acknowledgement with the integers of all workers but the owner",
                           plain(ATP_TYPE_ACK, ATP_INT32_LANES), {5, 0xFFFFFFFF}));
    vectors.push_back(good("an acknowledgement to an owner whose numbers are included",
                           with_flags(plain(ATP_TYPE_ACK, ATP_FLOAT32_LANES), ATP_FLAG_WHOLE), {0x40A00000}));
}

void append_flags(std::vector<WireVector>& vectors) {
    for (unsigned bit = 0; (1u << bit) <= ATP_FLAG_ALL; ++bit) {
        const auto flag = static_cast<std::uint16_t>(1u << bit);
        vectors.push_back(good("a gradient with the flag " + wire::flags_to_string(flag) + " alone",
                               with_flags(gradient(), flag), {7, 8, 9, 10, 11}));
    }
    constexpr auto all_but = [](unsigned flag) { return static_cast<std::uint16_t>(ATP_FLAG_ALL & ~flag); };
    vectors.push_back(
        good("a gradient with every flag but proof", with_flags(gradient(), all_but(ATP_FLAG_PROOF)), {7, 8}));
    vectors.push_back(good("a gradient with every flag but audit, one element and proof words",
                           with_flags(gradient(), all_but(ATP_FLAG_AUDIT)), {7, 8, 9, 10, 11}));
    vectors.push_back(good("an acknowledgement with proof words",
                           with_flags(plain(ATP_TYPE_ACK, ATP_INT16_LANES), ATP_FLAG_PROOF), {7, 8, 9, 10, 11}));
    vectors.push_back(good("a probe with the flag proof, which means nothing there",
                           with_flags(plain(ATP_TYPE_PROBE, ATP_DTYPE_NONE), ATP_FLAG_PROOF), {}));
    vectors.push_back(good("a request to send again with bypass",
                           with_flags(plain(ATP_TYPE_NACK, ATP_DTYPE_INT32), ATP_FLAG_BYPASS), {}));
}

// Every field as small as a valid packet allows.
atp_header smallest() {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.token = 1;
    header.bitmap0 = header.mask0 = header.bitmap1 = header.mask1 = 1;
    return header;
}

// Every field as large as a valid packet allows.
atp_header largest() {
    atp_header header = gradient();
    header.flags = ATP_FLAG_ALL & ~static_cast<unsigned>(ATP_FLAG_PROOF);
    header.hop = ATP_LEVELS;
    header.lanes = atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32);
    header.window_log2 = ATP_WINDOW_LOG2_MAX;
    header.scale = header.sending = header.part = 0xFF;
    header.token = ~std::uint64_t{0};
    header.job = header.seq = header.index = header.argument = 0xFFFFFFFF;
    header.channel = header.worker = header.peer = 0xFFFF;
    header.bitmap0 = header.mask0 = header.bitmap1 = header.mask1 = 0xFFFFFFFF;
    return header;
}

atp_header several_whole_units() {
    atp_header header = gradient();
    header.flags = ATP_FLAG_WHOLE;
    header.bitmap0 = header.mask0 = 0;
    header.bitmap1 = 0x71;
    return header;
}

atp_header gradient_at_scale(std::uint8_t scale) {
    atp_header header = gradient();
    header.scale = scale;
    return header;
}

void append_extremes(std::vector<WireVector>& vectors) {
    vectors.push_back(good("the smallest value of every field, in one lane", smallest(), {0}));
    vectors.push_back(good("the largest value of every field", largest(), {0xFFFFFFFF}));
    vectors.push_back(good("several units, whole, and therefore no members", several_whole_units(), {3}));
    vectors.push_back(good("a scale of its own, 2^26", gradient_at_scale(ATP_SCALE_ONE + 26), {3}));
    vectors.push_back(good("62 lanes, as the papers have them", gradient(), counting_lanes(62)));
    vectors.push_back(good("as many lanes as a datagram holds", gradient(), Lanes(ATP_MAX_LANES)));
}

void append_bad_lengths(std::vector<WireVector>& vectors) {
    Bytes header_only = to_bytes(plain(ATP_TYPE_PROBE, ATP_DTYPE_NONE), {});
    Bytes short_by_one(header_only.begin(), header_only.end() - 1);
    Bytes ragged = to_bytes(gradient(), {1, 2});
    ragged.pop_back();
    vectors.push_back(bad_bytes(DecodeError::truncated, "no bytes at all", {}));
    vectors.push_back(bad_bytes(DecodeError::truncated, "one byte less than a header", std::move(short_by_one)));
    vectors.push_back(bad_bytes(DecodeError::ragged, "the last lane lacks a byte", ragged));
    vectors.push_back(
        bad(DecodeError::oversized, "one lane more than a datagram holds", gradient(), Lanes(ATP_MAX_LANES + 1)));
    ragged[ATP_OFFSET_VERSION] = std::byte{0xA6};
    vectors.push_back(bad_bytes(DecodeError::version, "the next version, whatever its lanes look like", ragged));
}

void append_bad_fields(std::vector<WireVector>& vectors) {
    const auto refuse = [&vectors](DecodeError error, std::string description, auto change) {
        atp_header header = gradient();
        change(header);
        vectors.push_back(bad(error, std::move(description), header, {1}));
    };
    refuse(DecodeError::version, "version 0", [](atp_header& header) { header.version = 0; });
    refuse(DecodeError::type, "type 0", [](atp_header& header) { header.type = 0; });
    refuse(DecodeError::type, "the type past the last", [](atp_header& header) { header.type = ATP_TYPE_LAST + 1; });
    refuse(DecodeError::flags, "the flag past the last", [](atp_header& header) { header.flags = ATP_FLAG_ALL + 1; });
    refuse(DecodeError::flags, "the highest flag", [](atp_header& header) { header.flags = 0x8000; });
    refuse(DecodeError::hop, "a hop past the server", [](atp_header& header) { header.hop = ATP_LEVELS + 1; });
    refuse(DecodeError::window, "a window too large",
           [](atp_header& header) { header.window_log2 = ATP_WINDOW_LOG2_MAX + 1; });
    refuse(DecodeError::token, "token 0", [](atp_header& header) { header.token = 0; });
    refuse(DecodeError::set, "a member outside the unit", [](atp_header& header) { header.bitmap0 |= 0x40000000; });
    refuse(DecodeError::set, "a unit outside the job", [](atp_header& header) { header.bitmap1 = 0x2; });
    refuse(DecodeError::set, "a gradient of no member", [](atp_header& header) { header.bitmap0 = 0; });
    refuse(DecodeError::set, "a gradient of no unit", [](atp_header& header) { header.bitmap1 = 0; });
    refuse(DecodeError::set, "a whole gradient of no unit", [](atp_header& header) {
        header.flags = ATP_FLAG_WHOLE;
        header.bitmap1 = 0;
    });
    refuse(DecodeError::set, "members of two units", [](atp_header& header) { header.bitmap1 = 0x11; });
    refuse(DecodeError::type, "several faults: the first in the order of the rules counts", [](atp_header& header) {
        header.type = 0;
        header.flags = 0xFFFF;
        header.token = 0;
    });
}

// The rule of docs/spec/packet.md, written once more: by lists.
bool lanes_fit(unsigned type, unsigned lanes, bool has_words) {
    constexpr std::array typed{0x11U, 0x12U, 0x31U, 0x32U, 0x33U, 0x41U, 0x42U, 0x43U, 0x44U};
    const bool is_typed = std::ranges::find(typed, lanes) != typed.end();
    switch (type) {
        case ATP_TYPE_GRADIENT: return is_typed && has_words;
        case ATP_TYPE_ACK: return has_words ? is_typed : lanes == 0;
        case ATP_TYPE_NACK: return lanes >= 1 && lanes <= 4 && !has_words;
        case ATP_TYPE_PROBE: return lanes == 0;
        default: return lanes == 0 && !has_words;
    }
}

// Each type of packet but the list with each value of `lanes`, with words and without.
void append_lanes(std::vector<WireVector>& vectors) {
    for (unsigned type = ATP_TYPE_GRADIENT; type <= ATP_TYPE_READY; ++type) {
        for (unsigned lanes = 0; lanes <= 0xFF; ++lanes) {
            // Forms and types beyond the first unknown one differ in nothing else.
            const bool is_known = (lanes & 0xFU) <= ATP_DTYPE_LAST && lanes >> 4U <= ATP_DTYPE_LAST;
            if (!is_known && lanes != 0x05 && lanes != 0x15 && lanes != 0x51 && lanes != 0xFF) continue;
            for (const bool has_words : {false, true}) {
                const atp_header header = plain(static_cast<atp_type>(type), static_cast<std::uint8_t>(lanes));
                const Lanes words(has_words ? 2 : 0, 5);
                const std::string text = std::string(wire::type_to_string(header.type)) + " of lanes " +
                                         std::to_string(lanes) + (has_words ? ", two words" : ", no words");
                const bool fits = lanes_fit(type, lanes, has_words);
                vectors.push_back(fits ? good(text, header, words) : bad(DecodeError::lanes, text, header, words));
            }
        }
    }
}

void append_bad_lists(std::vector<WireVector>& vectors) {
    const auto refuse = [&vectors](std::string description, std::uint8_t lanes, std::size_t words) {
        vectors.push_back(
            bad(DecodeError::lanes, std::move(description), plain(ATP_TYPE_ACK_LIST, lanes), counting_lanes(words)));
    };
    refuse("a list of one acknowledgement", ATP_DTYPE_NONE, 0);
    refuse("a list that ends within an acknowledgement", ATP_DTYPE_NONE, 7);
    refuse("a list of 17 acknowledgements", ATP_DTYPE_NONE, ATP_MAX_ACK_LIST_LANES + ATP_LISTED_ACK_LANES);
    refuse("a list of acknowledgements with lanes", ATP_INT32_LANES, 4);
}

void append_bad_proofs(std::vector<WireVector>& vectors) {
    const auto refuse = [&vectors](std::string description, const atp_header& header, std::size_t words) {
        vectors.push_back(bad(DecodeError::proof, std::move(description), header, counting_lanes(words)));
    };
    refuse("audit and proof", with_flags(gradient(), ATP_FLAG_AUDIT | ATP_FLAG_PROOF), 6);
    refuse("audit and proof without lanes",
           with_flags(plain(ATP_TYPE_WAIT, ATP_DTYPE_NONE), ATP_FLAG_AUDIT | ATP_FLAG_PROOF), 0);
    refuse("proof words of floats", with_flags(plain(ATP_TYPE_GRADIENT, ATP_FLOAT32_LANES), ATP_FLAG_PROOF), 6);
    for (std::size_t words = 1; words <= ATP_PROOF_LANES; ++words) {
        refuse(std::to_string(words) + " words with the flag proof, which leave no element",
               with_flags(gradient(), ATP_FLAG_PROOF), words);
    }
}

atp_header part_of(atp_header header, unsigned packet, unsigned rank) {
    header.part = static_cast<std::uint8_t>(packet << ATP_PART_PACKET_SHIFT | rank);
    return header;
}

void append_parts(std::vector<WireVector>& vectors) {
    const auto lanes_of = [](atp_type type, unsigned form, unsigned words) {
        return with_flags(plain(type, static_cast<std::uint8_t>(form << ATP_LANES_FORM_SHIFT | words)),
                          ATP_FLAG_BYPASS);
    };
    constexpr unsigned int8 = ATP_DTYPE_INT8;
    constexpr unsigned int16 = ATP_DTYPE_INT16;
    constexpr unsigned int32 = ATP_DTYPE_INT32;
    const auto accept = [&vectors](std::string description, const atp_header& header, const Lanes& words) {
        vectors.push_back(good(std::move(description), header, words));
    };
    const auto refuse = [&vectors](std::string description, const atp_header& header, const Lanes& words) {
        vectors.push_back(bad(DecodeError::part, std::move(description), header, words));
    };
    accept("rank 1 of a member, alone", part_of(lanes_of(ATP_TYPE_GRADIENT, int32, int32), 0, 1), {1});
    accept("rank 63 of a member, alone", part_of(lanes_of(ATP_TYPE_GRADIENT, int32, int32), 0, 63), {1});
    accept("the last part of 8-bit numbers in int32", part_of(lanes_of(ATP_TYPE_GRADIENT, int8, int32), 3, 0), {1});
    accept("the last part of 8-bit numbers in int16", part_of(lanes_of(ATP_TYPE_ACK, int8, int16), 1, 0), {1});
    accept("the last part of 16-bit numbers in int32", part_of(lanes_of(ATP_TYPE_ACK, int16, int32), 1, 0), {1});
    accept("a request for part 3", part_of(plain(ATP_TYPE_NACK, ATP_DTYPE_FLOAT32), 3, 0), {});
    refuse("a part without bypass", with_flags(part_of(lanes_of(ATP_TYPE_GRADIENT, int8, int32), 1, 0), 0), {1});
    refuse("a rank without bypass", with_flags(part_of(lanes_of(ATP_TYPE_GRADIENT, int32, int32), 0, 1), 0), {1});
    refuse("part 1 of one", part_of(lanes_of(ATP_TYPE_GRADIENT, int32, int32), 1, 0), {1});
    refuse("part 2 of two", part_of(lanes_of(ATP_TYPE_GRADIENT, int16, int32), 2, 0), {1});
    refuse("part 2 of two, 8-bit numbers in int16", part_of(lanes_of(ATP_TYPE_GRADIENT, int8, int16), 2, 0), {1});
    refuse("a result of a rank", part_of(lanes_of(ATP_TYPE_ACK, int32, int32), 0, 1), {1});
    refuse("part 1 of a result without lanes", part_of(plain(ATP_TYPE_ACK, ATP_DTYPE_NONE), 1, 0), {});
    for (const atp_type type : {ATP_TYPE_PROBE, ATP_TYPE_WAIT, ATP_TYPE_FLUSH, ATP_TYPE_READY}) {
        const std::string name{wire::type_to_string(static_cast<std::uint8_t>(type))};
        refuse(name + " of a part", part_of(plain(type, ATP_DTYPE_NONE), 1, 0), {});
        refuse(name + " of a rank", part_of(plain(type, ATP_DTYPE_NONE), 0, 1), {});
    }
}

// The two largest packets end in 64 KiB of zeros.
constexpr std::size_t spell_out_up_to = 1024;

}  // namespace

nlohmann::ordered_json to_json(const WireVector& vector) {
    Json json;
    const SpeltBytes spelt = spell(vector.bytes, spell_out_up_to);
    json["description"] = vector.description;
    json["hex"] = spelt.hex;
    json["zero_bytes_after_hex"] = spelt.zero_bytes_after_hex;
    if (vector.error != DecodeError::none) {
        json["error"] = wire::to_string(vector.error);
        return json;
    }
    json["header"] = to_json(vector.header);
    json["lane_count"] = vector.lanes.size();
    // Writes each lane that begins before the counted zeros, and leaves out the lanes within them.
    const std::size_t lane_bytes = std::max<std::size_t>(spelt.bytes, ATP_HEADER_BYTES) - ATP_HEADER_BYTES;
    const auto spelt_out_lanes = static_cast<std::ptrdiff_t>((lane_bytes + ATP_LANE_BYTES - 1) / ATP_LANE_BYTES);
    json["lanes"] = Lanes(vector.lanes.begin(), vector.lanes.begin() + spelt_out_lanes);
    json["text"] = wire::to_string(vector.header, vector.lanes.size());
    return json;
}

std::vector<WireVector> fuzzer_vectors() {
    std::vector<WireVector> vectors;
    append_types(vectors);
    append_flags(vectors);
    append_extremes(vectors);
    append_bad_lengths(vectors);
    append_bad_fields(vectors);
    append_bad_lists(vectors);
    append_bad_proofs(vectors);
    append_parts(vectors);
    return vectors;
}

std::vector<WireVector> wire_vectors() {
    std::vector<WireVector> vectors = fuzzer_vectors();
    append_lanes(vectors);
    return vectors;
}

}  // namespace atp::conformance
