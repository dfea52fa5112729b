// SPDX-License-Identifier: Apache-2.0
// Sums of packets of every length, in each width of elements, against plain arithmetic.
#include <algorithm>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "job_in_the_kernel.h"

namespace atp::test {
namespace {

// Elements of `width` bits of a lane, the first in the upper bits.
std::vector<std::int64_t> elements_of(std::int32_t lane, unsigned width) {
    std::vector<std::int64_t> elements;
    for (unsigned done = 0; done < 32; done += width) {
        const std::uint32_t upper = static_cast<std::uint32_t>(lane) << done;
        elements.push_back(static_cast<std::int32_t>(upper) >> (32 - width));
    }
    return elements;
}

std::int32_t lane_of_elements(const std::vector<std::int64_t>& elements, unsigned width) {
    std::uint64_t lane = 0;
    for (const std::int64_t element : elements) {
        lane = lane << width | (static_cast<std::uint64_t>(element) & ((1ULL << width) - 1));
    }
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(lane));
}

// How the lanes of a fragment are added. `tail`: lanes at the end that wrap: the audit lane or the proof words.
struct Shape {
    unsigned flags = 0;
    std::uint8_t type = ATP_INT32_LANES;
    unsigned width = 32;

    std::size_t tail() const {
        if ((flags & ATP_FLAG_PROOF) != 0) return ATP_PROOF_LANES;
        return (flags & ATP_FLAG_AUDIT) != 0 ? 1 : 0;
    }
};

// Adds lanes as the protocol requires. Returns true if an element leaves its width.
bool add(const Lanes& addends, const Shape& shape, Lanes& sums) {
    const std::int64_t highest = (std::int64_t{1} << (shape.width - 1)) - 1;
    bool overflowed = false;
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
        if (lane + shape.tail() >= sums.size()) {
            sums[lane] =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(std::int64_t{sums[lane]} + addends[lane]));
            continue;
        }
        std::vector<std::int64_t> elements = elements_of(sums[lane], shape.width);
        const std::vector<std::int64_t> others = elements_of(addends[lane], shape.width);
        for (std::size_t at = 0; at < elements.size(); ++at) {
            const std::int64_t exact = elements[at] + others[at];
            elements[at] = std::clamp(exact, -highest - 1, highest);
            overflowed |= elements[at] != exact;
        }
        sums[lane] = lane_of_elements(elements, shape.width);
    }
    return overflowed;
}

// Sends packets of every length from three members, and compares the sum with plain arithmetic.
class EveryLength : public SwitchInTheKernel {
  protected:
    // `limit`: the largest magnitude of an element.
    Lanes draw(std::size_t lanes, std::int32_t limit, unsigned width) {
        std::uniform_int_distribution<std::int64_t> any(-limit, limit);
        Lanes drawn(lanes);
        std::vector<std::int64_t> elements(32 / width);
        for (std::int32_t& lane : drawn) {
            for (std::int64_t& element : elements) element = any(random_);
            lane = lane_of_elements(elements, width);
        }
        return drawn;
    }

    void expect_sum(std::size_t lanes, std::int32_t limit, const Shape& shape) {
        Lanes sums(lanes);
        bool overflowed = false;
        xdp::Outcome outcome;
        ++seq_;
        for (unsigned member = 0; member < 3; ++member) {
            const Lanes addends = draw(lanes, limit, shape.width);
            if (member == 0) sums = addends;
            if (member != 0) overflowed |= add(addends, shape, sums);
            atp_header header = gradient(member, seq_);
            header.index = 3;
            header.window_log2 = 0;  // window of 1: each fragment supersedes the previous one in the aggregator
            header.flags = static_cast<std::uint16_t>(shape.flags);
            header.lanes = shape.type;
            outcome = send(header, addends, {.padding = seq_ % 3});
            EXPECT_EQ(outcome.disposition, member == 2 ? xdp::Disposition::passed : xdp::Disposition::dropped);
        }
        Unwrapped after = unwrap(outcome.frame);
        wire::Packet packet;
        ASSERT_EQ(wire::decode(after.payload, packet), wire::DecodeError::none);
        EXPECT_EQ((packet.header.flags & ATP_FLAG_OVERFLOW) != 0, overflowed);
        EXPECT_EQ(packet.header.hop, 1);
        EXPECT_EQ(packet.header.bitmap0, members_mask);
        EXPECT_EQ(after.payload, conformance::bytes_of(packet.header, sums));
        EXPECT_EQ(after.checksum, Checksum::full);
        EXPECT_EQ(after.padding, seq_ % 3);
    }

    void expect_sums_of_every_length(std::int32_t limit, const Shape& shape) {
        if (machine == nullptr) return;
        for (std::size_t lanes = 1 + shape.tail() - (shape.flags == ATP_FLAG_AUDIT); lanes <= ATP_XDP_LANES; ++lanes) {
            SCOPED_TRACE(lanes);
            expect_sum(lanes, limit, shape);
            if (HasFailure()) return;
        }
    }

  private:
    std::mt19937 random_{1};
    std::uint32_t seq_ = 0;
};

constexpr std::int32_t never_overflows = 1 << 28;
constexpr std::int32_t often_overflows = std::numeric_limits<std::int32_t>::max();

TEST_F(EveryLength, AddsEveryLane) { expect_sums_of_every_length(never_overflows, {}); }

TEST_F(EveryLength, SaturatesEachLaneSeparately) { expect_sums_of_every_length(often_overflows, {}); }

TEST_F(EveryLength, WrapsOnlyTheAuditLane) { expect_sums_of_every_length(often_overflows, {.flags = ATP_FLAG_AUDIT}); }

TEST_F(EveryLength, WrapsOnlyTheProofWords) { expect_sums_of_every_length(often_overflows, {.flags = ATP_FLAG_PROOF}); }

TEST_F(EveryLength, H53_NarrowElementsSaturateAloneAtEachPlaceOfALane) {
    const std::tuple<std::uint8_t, unsigned, std::int32_t> types[] = {{std::uint8_t{ATP_INT16_LANES}, 16U, 32767},
                                                                      {std::uint8_t{ATP_INT8_LANES}, 8U, 127}};
    for (const auto& [type, width, highest] : types) {
        for (const unsigned flags : {0U, unsigned{ATP_FLAG_AUDIT}, unsigned{ATP_FLAG_PROOF}}) {
            SCOPED_TRACE(width);
            const Shape shape{.flags = flags, .type = type, .width = width};
            expect_sums_of_every_length(highest / 4, shape);
            expect_sums_of_every_length(highest, shape);
        }
    }
}

TEST_F(EveryLength, WrapOfTheAuditLaneIsNoOverflow) {
    if (machine == nullptr) return;
    constexpr std::int32_t big = std::numeric_limits<std::int32_t>::max();
    for (const std::size_t lanes : {1U, 2U, 3U, 16U, 17U, 351U, 352U}) {
        SCOPED_TRACE(lanes);
        Lanes addends(lanes, 1);
        addends.back() = big;
        machine->dismiss({job, token});
        ASSERT_TRUE(machine->admit(job, token, 0));
        ASSERT_TRUE(machine->write(1, {}));
        for (unsigned member = 0; member < 3; ++member) send(gradient_with(member, ATP_FLAG_AUDIT), addends);
        EXPECT_EQ(machine->job_counters({job, token})->packets.overflows, 0U);
        EXPECT_EQ(machine->job_counters({job, token})->packets.events[ATP_EVENT_COMPLETED], 1U);
    }
}

}  // namespace
}  // namespace atp::test
