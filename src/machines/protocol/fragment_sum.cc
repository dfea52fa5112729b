// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_sum.h"

#include <algorithm>
#include <limits>
#include <span>

#include "numeric/lanes32_sums.h"
#include "numeric/narrow_lanes.h"
#include "protocol/lane_sums.h"

namespace atp::protocol {
namespace {

// Lanes of the packet that carry elements.
std::size_t payload_of(const FragmentRecords& records, const wire::Packet& packet) {
    return packet.lane_count() - records.tail_lanes(atp_has_proof(&packet.header) != 0);
}

std::size_t elements_of(const FragmentRecords& records, const wire::Packet& packet) {
    return payload_of(records, packet) * atp_elements_per_word(atp_lanes_type(&packet.header));
}

std::uint32_t proof_word(const wire::Packet& packet, std::size_t at) {
    const auto words = packet.lanes.last(ATP_PROOF_LANES * ATP_LANE_BYTES);
    return wire::load_u32(words.data() + at * ATP_LANE_BYTES);
}

template <class Integer>
bool fit(std::span<const std::int64_t> sums) {
    using Limits = std::numeric_limits<Integer>;
    return std::ranges::all_of(sums, [](std::int64_t sum) { return sum >= Limits::min() && sum <= Limits::max(); });
}

// Writes the sums as integers and returns their type, or ATP_DTYPE_NONE if they do not fit, or not in one packet of
// `payload` words.
std::uint8_t write_integers(const FragmentRecord& record, std::size_t payload, std::span<const std::int64_t> sums,
                            std::byte* result) {
    if (record.plain) {
        numeric::sums_to_integers(sums.data(), sums.size(), result);
        return ATP_DTYPE_INT32;
    }
    if (record.form == ATP_DTYPE_INT16 && numeric::int16_lanes().from_sums(sums.data(), sums.size(), result)) {
        return ATP_DTYPE_INT16;
    }
    if (record.form == ATP_DTYPE_INT8 && numeric::int8_lanes().from_sums(sums.data(), sums.size(), result)) {
        return ATP_DTYPE_INT8;
    }
    const bool proves = record.proof && sums.size() + ATP_PROOF_LANES <= payload && fit<std::int32_t>(sums);
    if (!record.without_owner && !proves) return ATP_DTYPE_NONE;
    numeric::sums_to_integers(sums.data(), sums.size(), result);
    return ATP_DTYPE_INT32;
}

}  // namespace

PacketRange range_of(const FragmentRecords& records, const wire::Packet& packet) {
    const atp_header& header = packet.header;
    const std::size_t count = elements_of(records, packet);
    const std::size_t end = atp_part_packet(&header) * records.payload() + count;
    const bool one_packet = atp_lanes_type(&header) != ATP_DTYPE_FLOAT32 || atp_lanes_form(&header) == ATP_DTYPE_INT32;
    const bool is_last = one_packet || (header.flags & ATP_FLAG_LAST_RANK) != 0 || count < records.payload();
    return {.first = end - count, .end = end, .is_last = is_last};
}

bool fits_size(const FragmentRecord& record, const PacketRange& range) {
    if (range.is_last) return record.sized ? record.elements == range.end : record.elements <= range.end;
    return !record.sized || range.end <= record.elements;
}

void note_size(FragmentRecord& record, const PacketRange& range) {
    if (record.sized) return;
    record.elements = std::max(record.elements, static_cast<std::uint32_t>(range.end));
    record.sized = range.is_last;
}

void assign_integers(FragmentRecords& records, FragmentRecord& record, const wire::Packet& packet, bool is_whole,
                     double inverse_scale) {
    const std::size_t elements = elements_of(records, packet);
    const std::byte* lanes = packet.lanes.data();
    const std::uint8_t type = atp_lanes_type(&packet.header);
    const bool has_proof = atp_has_proof(&packet.header) != 0;
    const bool is_plain = (packet.header.flags & ATP_FLAG_PLAIN) != 0;
    record.converted = is_whole && !is_plain;
    const bool stays = has_proof || record.without_owner || type != ATP_DTYPE_INT32;
    record.result_type = stays ? type : std::uint8_t{ATP_DTYPE_FLOAT32};
    if (!record.converted) {
        assignment_of(type)(lanes, elements, records.sums(record).data());
    } else if (record.result_type == ATP_DTYPE_FLOAT32) {
        numeric::lanes_to_floats(lanes, elements, inverse_scale, records.result(record).data());
    } else {
        std::copy_n(lanes, payload_of(records, packet) * ATP_LANE_BYTES, records.result(record).data());
    }
    for (std::size_t at = 0; has_proof && at < ATP_PROOF_LANES; ++at) record.proof_words[at] = proof_word(packet, at);
}

void add_integers(FragmentRecords& records, FragmentRecord& record, const wire::Packet& packet) {
    const std::size_t elements = elements_of(records, packet);
    addition_of(atp_lanes_type(&packet.header))(packet.lanes.data(), elements, records.sums(record).data());
    if (atp_has_proof(&packet.header) == 0) return;
    for (std::size_t at = 0; at < ATP_PROOF_LANES; ++at) record.proof_words[at] += proof_word(packet, at);
}

void add_floats(FragmentRecords& records, FragmentRecord& record, const wire::Packet& packet, double scale) {
    const auto [first, end, is_last] = range_of(records, packet);
    const std::size_t count = end - first;
    numeric::exact_add(packet.lanes.data(), count, &records.exact(record)[first]);
    numeric::sums_add_floats(packet.lanes.data(), count, static_cast<float>(scale), &records.sums(record)[first]);
}

bool sums_fit_form(FragmentRecords& records, const FragmentRecord& record) {
    if (record.converted || record.plain) return true;
    const auto sums = records.sums(record).first(record.elements);
    if (record.form == ATP_DTYPE_INT8) return fit<std::int8_t>(sums);
    return record.form == ATP_DTYPE_INT16 ? fit<std::int16_t>(sums) : fit<std::int32_t>(sums);
}

void write_result(FragmentRecords& records, FragmentRecord& record, double inverse_scale) {
    const std::span<std::byte> result = records.result(record);
    const std::size_t elements = record.elements;
    if (record.mode == FragmentRecord::Mode::floats) {
        numeric::exact_round(records.exact(record).data(), elements, result.data());
        numeric::known_sums_to_floats(records.sums(record).data(), elements, inverse_scale, result.data());
        record.result_type = ATP_DTYPE_FLOAT32;
    } else if (!record.converted) {
        const auto sums = records.sums(record).first(elements);
        record.result_type = write_integers(record, records.payload(), sums, result.data());
        if (record.result_type == ATP_DTYPE_NONE) {
            numeric::sums_to_floats(sums.data(), elements, inverse_scale, result.data());
            record.result_type = ATP_DTYPE_FLOAT32;
        }
    }
}

}  // namespace atp::protocol
