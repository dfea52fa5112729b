// SPDX-License-Identifier: Apache-2.0
#include "check/truth.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "protocol/audit.h"

namespace atp::check {
namespace {

// The token is the key of the indices, so it decides which slots share an aggregator. With this one, slots 0 and 1 of
// the first job are apart in a table of two, and slots 2 and 3 share the aggregator of slot 1. The tests of the tables
// fail if another hash changes this; then look for another token.
constexpr std::uint64_t first_token = 0x1442b;
// Only in configurations of one aggregator.
constexpr std::uint64_t earlier_token = 0x01d0;

constexpr std::uint32_t canonical_nan = 0x7FC00000U;

// A sum of these values shows which ranks it includes, and how often. With the factors of Truth::value(), all sums stay
// below 2^24, so float32 represents them exactly.
constexpr std::array<float, max_workers> base_of_rank = {1, 100, 10'000, 1'000'000};

// Does not fit an int32. float32 represents it exactly, and double represents its sums with other values exactly.
constexpr float too_large = 3e9F;
// The sum of two of these exceeds 32 bits.
constexpr float near_limit = 2e9F;
// Fits 16 bits. The sum of two does not.
constexpr float near_narrow_limit = 20'000;

// The word with this integer, or with two of it.
std::uint32_t integer_word(std::int64_t integer, std::uint8_t type) {
    const auto bits = static_cast<std::uint32_t>(integer);
    return type == ATP_DTYPE_INT16 ? bits << 16U | (bits & 0xFFFFU) : bits;
}

std::string text_of(const char* format, std::uint32_t found, std::uint32_t requested) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(), format, found, requested);
    return text.data();
}

}  // namespace

std::uint32_t job_number(unsigned job) { return 0x0a + job; }

std::uint64_t job_token(unsigned job, bool earlier_incarnation) {
    return (earlier_incarnation ? earlier_token : first_token) + job;
}

unsigned job_of(std::uint64_t token) {
    return static_cast<unsigned>(token - (is_earlier(token) ? earlier_token : first_token));
}

bool is_earlier(std::uint64_t token) { return token - earlier_token < max_jobs; }

protocol::ChannelConfig channel_of(const Configuration& configuration, unsigned job, bool earlier_incarnation) {
    return {.job = job_number(configuration.same_number ? 0 : job),
            .token = job_token(job, earlier_incarnation),
            .channel = model_channel,
            .lanes = configuration.lanes(),
            .window_log2 = configuration.window_log2,
            .audit = true,
            .aggregators = configuration.aggregators,
            .first_seq = configuration.first_seq};
}

float Truth::value(bool earlier_incarnation, unsigned rank, std::int32_t offset) const {
    const unsigned last = membership_.workers() - 1;
    const bool first_fragment = offset == 0 && !earlier_incarnation;
    switch (configuration_.values) {
        case Values::small: break;
        case Values::too_large:
            if (first_fragment && rank == 1) return too_large;
            break;
        case Values::owner_too_large:
            if (offset == 1 && rank == 0 && !earlier_incarnation) return too_large;
            break;
        case Values::not_finite:
            if (first_fragment && rank == 0) return std::numeric_limits<float>::infinity();
            if (offset == 1 && rank == last) return std::numeric_limits<float>::quiet_NaN();
            break;
        case Values::one_large:
            if (first_fragment && rank == 0) return near_limit;
            break;
        case Values::saturating_and_too_large:
            if (first_fragment && rank == last) return too_large;
            [[fallthrough]];
        case Values::wide_sums:
            if (first_fragment && rank < 2) return near_narrow_limit;
            break;
        case Values::saturating:
            if (first_fragment && rank < 2) return near_limit;
            if (first_fragment && rank == 2) return -near_limit;
            break;
    }
    const std::int32_t factor = (offset + 1) % 5 + 1;
    return base_of_rank[rank] * static_cast<float>(earlier_incarnation ? factor + 6 : factor);
}

bool Truth::plain(std::int32_t offset) const {
    return is_in(configuration_.plain_tensors | configuration_.gathered_tensors, offset);
}

protocol::Delivery Truth::delivery(std::int32_t offset) const {
    const bool gathered = is_in(configuration_.gathered_tensors, offset);
    if (!gathered && !is_in(configuration_.owned_tensors, offset)) return {};
    const unsigned owner = configuration_.one_owner ? 0 : static_cast<unsigned>(offset) % membership_.workers();
    return {.owner = static_cast<std::uint16_t>(owner), .one_sender = gathered};
}

bool Truth::is_in(std::uint8_t tensors, std::int32_t offset) const {
    for (std::size_t tensor = 0; tensor < configuration_.tensors.size(); ++tensor) {
        if (offset < configuration_.tensors[tensor]) {
            return offset >= 0 && (tensors >> tensor & 1U) != 0;
        }
        offset -= configuration_.tensors[tensor];
    }
    return false;
}

std::uint32_t Truth::sum_bits(bool earlier_incarnation, std::int32_t offset) const {
    const protocol::Delivery result = delivery(offset);
    double sum = 0;
    for (unsigned rank = 0; rank < membership_.workers(); ++rank) {
        if (result.contributes(static_cast<std::uint16_t>(rank)))
            sum += double{value(earlier_incarnation, rank, offset)};
    }
    if (plain(offset)) return static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
    return std::isnan(sum) ? canonical_nan : std::bit_cast<std::uint32_t>(static_cast<float>(sum));
}

std::int64_t Truth::sum_of_others(bool earlier_incarnation, std::int32_t offset) const {
    double sum = 0;
    for (unsigned rank = 0; rank < membership_.workers(); ++rank) {
        if (rank != delivery(offset).owner) sum += double{value(earlier_incarnation, rank, offset)};
    }
    return static_cast<std::int64_t>(sum);
}

// Two integers if the element is one.
float Truth::value_of_rank(bool earlier_incarnation, unsigned worker, std::int32_t offset, unsigned rank) const {
    const float whole = value(earlier_incarnation, worker, offset);
    if (!std::isfinite(whole) || configuration_.ranks_each == 1) return whole;
    const float first = std::trunc(whole / 2);
    return rank == 0 ? first : whole - first;
}

std::string Truth::wrong_gradient(const wire::Packet& packet) const {
    const atp_header& header = packet.header;
    const bool earlier = is_earlier(header.token);
    const std::int32_t offset = offset_of(header.seq);
    const bool whole = (header.flags & ATP_FLAG_WHOLE) != 0;
    double sum = 0;
    std::uint32_t audit = 0;
    float last_value = 0;
    for (unsigned rank = 0; rank < membership_.workers(); ++rank) {
        const protocol::Place& place = membership_.place(static_cast<std::uint16_t>(rank));
        const bool unit_in = (header.bitmap1 >> place.unit & 1U) != 0;
        if (whole && delivery(offset).adds_at_home(static_cast<std::uint16_t>(rank))) continue;
        if (!unit_in || (!whole && (header.bitmap0 >> place.member & 1U) == 0)) continue;
        const unsigned part = atp_part_rank(&header);
        last_value = part == 0 ? value(earlier, rank, offset) : value_of_rank(earlier, rank, offset, part - 1);
        sum += double{last_value};
        audit += protocol::audit_word(header.job, header.token, header.channel, header.seq, rank);
    }
    if (packet.lane_count() != configuration_.lanes()) return "a gradient lost or gained lanes";
    if (plain(offset) != ((header.flags & ATP_FLAG_PLAIN) != 0)) return "a gradient has the wrong PLAIN flag";
    const std::uint32_t audit_found = wire::load_u32(packet.lanes.last(ATP_LANE_BYTES).data());
    if (audit_found != audit) return text_of("audit lane is 0x%x, its set requires 0x%x", audit_found, audit);
    if ((header.flags & ATP_FLAG_OVERFLOW) != 0) return {};  // the packet declares its element invalid
    const std::uint32_t requested = atp_lanes_type(&header) == ATP_DTYPE_FLOAT32
                                        ? std::bit_cast<std::uint32_t>(last_value)
                                        : integer_word(static_cast<std::int64_t>(sum), atp_lanes_type(&header));
    for (std::size_t lane = 0; lane + 1 < packet.lane_count(); ++lane) {
        const std::uint32_t found = wire::load_u32(packet.lanes.data() + lane * ATP_LANE_BYTES);
        if (found != requested) return text_of("element is 0x%x, its set sums to 0x%x", found, requested);
    }
    return {};
}

std::string Truth::wrong_ack(const wire::Packet& packet) const {
    const bool earlier = is_earlier(packet.header.token);
    const std::int32_t offset = offset_of(packet.header.seq);
    if (packet.lanes.empty()) return delivery(offset).is_owned() ? "" : "a result for all workers has no lanes";
    const std::uint32_t found = wire::load_u32(packet.lanes.data());
    const bool for_owner = delivery(offset).is_owned() && !delivery(offset).one_sender;
    if (for_owner && (packet.header.flags & ATP_FLAG_WHOLE) == 0) {
        const std::int64_t others = sum_of_others(earlier, offset);
        const std::uint8_t type = atp_lanes_type(&packet.header);
        if (type == ATP_DTYPE_FLOAT32) return "a result lacks the numbers of its owner, and is not of integers";
        if (found == integer_word(others, type)) return {};
        return text_of("result is 0x%x, the sum of all others is 0x%x", found, integer_word(others, type));
    }
    const bool narrow = atp_lanes_type(&packet.header) == ATP_DTYPE_INT16;
    const std::uint32_t sum = sum_bits(earlier, offset);
    const std::uint32_t requested =
        narrow ? integer_word(static_cast<std::int64_t>(std::bit_cast<float>(sum)), ATP_DTYPE_INT16) : sum;
    if ((atp_lanes_type(&packet.header) == ATP_DTYPE_INT32) != plain(offset))
        return "a result has the wrong type of numbers";
    if (found != requested) return text_of("result is 0x%x, the sum is 0x%x", found, requested);
    return {};
}

}  // namespace atp::check
