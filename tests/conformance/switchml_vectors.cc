// SPDX-License-Identifier: Apache-2.0
#include "switchml_vectors.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "vector_file.h"

namespace atp::conformance {
namespace {

namespace format = atp::switchml;
using Bytes = std::vector<std::byte>;
using Lanes = std::vector<std::uint32_t>;
using format::DecodeError;
using format::Header;
using Json = nlohmann::ordered_json;

// Writes the field without the encoder of switchml/packet.h, because the vectors check that encoder.
void append(Bytes& bytes, std::size_t width, std::uint32_t value) {
    for (std::size_t byte = width; byte-- > 0;) bytes.push_back(static_cast<std::byte>(value >> (8 * byte)));
}

Bytes to_bytes(const Header& header, const Lanes& lanes) {
    Bytes bytes;
    append(bytes, 1, 0xB1);
    append(bytes, 1, header.flags);
    append(bytes, 1, header.job);
    append(bytes, 1, header.worker);
    append(bytes, 2, header.slot);
    append(bytes, 4, header.offset);
    for (const std::uint32_t lane : lanes) append(bytes, header.lane_bytes(), lane);
    return bytes;
}

// Every field differs from every other and from 0, so that a decoder that exchanges two fields fails.
Header update(std::uint8_t flags = 0) {
    return {.flags = flags, .job = 0x0A, .worker = 0x23, .slot = 0x0405, .offset = 0x11121405};
}

Lanes counting_lanes(std::size_t count) {
    Lanes lanes(count);
    for (std::size_t lane = 0; lane < count; ++lane) lanes[lane] = static_cast<std::uint32_t>(0x01000000 + lane);
    return lanes;
}

class Vectors {
  public:
    void good(std::string description, const Header& header, Lanes lanes) {
        Bytes bytes = to_bytes(header, lanes);
        all_.push_back({std::move(description), std::move(bytes), DecodeError::none, header, std::move(lanes)});
    }
    void bad(DecodeError error, std::string description, Bytes bytes) {
        all_.push_back({std::move(description), std::move(bytes), error, {}, {}});
    }
    [[nodiscard]] std::vector<SwitchMlVector> take() { return std::move(all_); }

  private:
    std::vector<SwitchMlVector> all_;
};

void append_good(Vectors& vectors) {
    vectors.good("an update of one lane", update(), {7});
    vectors.good("an update of the other copy of a slot", update(format::flag_version), {1, 0xFFFFFFFF, 100000000});
    vectors.good("a result", update(format::flag_result), {0x7FFFFFFF, 0x80000000});
    vectors.good("a result of a sum that did not fit", update(format::flag_result | format::flag_overflow),
                 {0x7FFFFFFF});
    vectors.good("an update of a number that did not fit", update(format::flag_overflow), {0});
    vectors.good("an update in 16-bit floats", update(format::flag_halves), {0x3C00, 0xC100, 0x7C00});
    vectors.good("an odd number of 16-bit floats", update(format::flag_halves), {1});
    vectors.good("every flag", update(format::all_flags), {0x3C00});
    vectors.good("32 lanes, as the paper has them", update(), counting_lanes(format::paper_lanes));
    vectors.good("the smallest value of every field", {}, {0});
    vectors.good("the largest value of every field",
                 {.flags = format::all_flags, .job = 0xFF, .worker = 63, .slot = 0xFFFF, .offset = 0xFFFFFFFF},
                 {0xFFFF});
}

void append_bad(Vectors& vectors) {
    const Bytes sound = to_bytes(update(), {1});
    const auto with = [&](std::size_t at, std::uint8_t value) {
        Bytes bytes = sound;
        bytes.at(at) = std::byte{value};
        return bytes;
    };
    vectors.bad(DecodeError::truncated, "no bytes at all", {});
    vectors.bad(DecodeError::truncated, "one byte less than a header", Bytes(sound.begin(), sound.begin() + 9));
    vectors.bad(DecodeError::format, "the version byte of ATP", with(0, ATP_VERSION));
    vectors.bad(DecodeError::format, "the next version", with(0, 0xB2));
    vectors.bad(DecodeError::flags, "the flag past the last", with(1, 0x10));
    vectors.bad(DecodeError::flags, "the highest flag", with(1, 0x80));
    vectors.bad(DecodeError::ragged, "no lanes", Bytes(sound.begin(), sound.begin() + 10));
    vectors.bad(DecodeError::ragged, "the last lane lacks a byte", Bytes(sound.begin(), sound.end() - 1));
    Bytes halves = to_bytes(update(format::flag_halves), {1, 2});
    halves.pop_back();
    vectors.bad(DecodeError::ragged, "the last 16-bit lane lacks a byte", std::move(halves));
    vectors.bad(DecodeError::worker, "the worker past the last", with(3, 64));
    Bytes several = with(1, 0xFF);
    several.at(3) = std::byte{0xFF};
    vectors.bad(DecodeError::flags, "several faults: the first in the order of the rules counts", std::move(several));
}

}  // namespace

nlohmann::ordered_json to_json(const SwitchMlVector& vector) {
    Json json{{"description", vector.description}, {"hex", spell(vector.bytes, vector.bytes.size()).hex}};
    if (vector.error != DecodeError::none) {
        json["error"] = format::to_string(vector.error);
        return json;
    }
    const Header& header = vector.header;
    json["header"] = {{"flags", header.flags},
                      {"job", header.job},
                      {"worker", header.worker},
                      {"slot", header.slot},
                      {"offset", header.offset}};
    json["lanes"] = vector.lanes;
    json["text"] = format::to_string(header, vector.lanes.size());
    return json;
}

std::vector<SwitchMlVector> switchml_vectors() {
    Vectors vectors;
    append_good(vectors);
    append_bad(vectors);
    return vectors.take();
}

}  // namespace atp::conformance
