// SPDX-License-Identifier: Apache-2.0
// The parts of the software switch around atp_decide(): jobs, counters, and checks of untrusted packets. The sums that
// it sends are those of decide.json: decide_conformance_test runs it against each row.
#include "protocol/switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "support/gradients.h"
#include "support/packets.h"
#include "support/random.h"

namespace atp::protocol {
namespace {

using testing::Bytes;
using testing::header_in;
using testing::Lanes;
using testing::lanes_in;
using testing::make_packet;
using testing::Random;

constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();

class SwitchTest : public ::testing::Test {
  protected:
    SwitchTest() { EXPECT_TRUE(machine.admit(channel.job, channel.token, 0)); }

    [[nodiscard]] atp_header gradient(std::uint16_t rank, std::uint32_t seq = 0, unsigned flags = 0) const {
        atp_header header = testing::gradient_of(channel, members, rank, seq);
        header.flags = static_cast<std::uint16_t>(header.flags | flags);
        return header;
    }
    [[nodiscard]] atp_header down(atp_type type, unsigned flags = 0, std::uint32_t seq = 0) const {
        atp_header header = gradient(0, seq, flags);
        header.type = static_cast<std::uint8_t>(type);
        header.lanes = testing::lanes_field(header.type, type == ATP_TYPE_ACK    ? ATP_DTYPE_FLOAT32
                                                         : type == ATP_TYPE_NACK ? ATP_DTYPE_INT32
                                                                                 : ATP_DTYPE_NONE);
        header.worker = ATP_WORKER_ALL;
        return header;
    }

    struct Result {
        Verdict verdict;
        Bytes bytes;
    };
    Result handle(Bytes bytes, bool congested = false, std::size_t room = 512) {
        const auto size = static_cast<std::uint32_t>(bytes.size());
        bytes.resize(std::max(bytes.size(), room));
        PacketBuffer packet_buffer{.data = bytes.data(),
                                   .size = size,
                                   .capacity = static_cast<std::uint32_t>(room),
                                   .congested = congested,
                                   .verdict = {}};
        machine.handle_packet(packet_buffer, now);
        bytes.resize(packet_buffer.size);
        return {packet_buffer.verdict, bytes};
    }
    Result handle(const atp_header& header, const Lanes& lanes = {}) { return handle(make_packet(header, lanes)); }

    [[nodiscard]] std::uint64_t events(atp_switch_event event) const { return machine.counters().events[event]; }

    ChannelConfig channel{.job = 1, .token = 0x5eed, .channel = 2, .lanes = 3, .window_log2 = 4, .aggregators = 8};
    Membership members = *Membership::star(3);
    Switch machine{{.aggregators = 8, .lanes = 4, .jobs = 3, .ageing = std::chrono::milliseconds(10)}};
    Time now{std::chrono::seconds(1)};
};

// --- sums

TEST_F(SwitchTest, LastGradientOfThreeGoesUpWithTheSum) {
    EXPECT_EQ(handle(gradient(0), {1, -5, 100}).verdict.route, Route::drop);
    EXPECT_EQ(handle(gradient(1), {2, -6, 200}).verdict.route, Route::drop);
    const Result result = handle(gradient(2), {3, -7, 300});
    EXPECT_EQ(result.verdict.route, Route::up);
    EXPECT_EQ(lanes_in(result.bytes), (Lanes{6, -18, 600}));
    EXPECT_EQ(header_in(result.bytes).bitmap0, 0x7U);
    EXPECT_EQ(header_in(result.bytes).hop, 1);
}

TEST_F(SwitchTest, ResendFetchesThePartialSum) {
    (void)handle(gradient(0), {10, 20, 30});
    const Result result = handle(gradient(1, 0, ATP_FLAG_RESEND), {1, 2, 3});
    EXPECT_EQ(lanes_in(result.bytes), (Lanes{11, 22, 33}));
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, SumBeyond32BitsIsMarked) {
    (void)handle(gradient(0), {highest, 0, 0});
    (void)handle(gradient(1), {1, 0, 0});
    // the sum is in range again, but stays marked as overflowed: the switch cannot prove that the sum is right
    const Result result = handle(gradient(2), {-5, 0, 0});
    EXPECT_NE(header_in(result.bytes).flags & ATP_FLAG_OVERFLOW, 0);
    EXPECT_EQ(machine.counters().overflows, 1U);
    EXPECT_EQ(machine.job_counters(channel.job, channel.token)->overflows, 1U);
}

TEST_F(SwitchTest, CongestionOfAGradientMarksTheSum) {
    (void)handle(make_packet(gradient(0), {1, 1, 1}), true);
    (void)handle(gradient(1), {1, 1, 1});
    EXPECT_NE(header_in(handle(gradient(2), {1, 1, 1}).bytes).flags & ATP_FLAG_ECN, 0);
    EXPECT_EQ(machine.counters().ecn, 1U);
}

TEST_F(SwitchTest, CongestionMarkOnAnAckDoesNotChangeTheAck) {
    const Bytes ack = make_packet(down(ATP_TYPE_ACK), {1, 2, 3});
    EXPECT_EQ(handle(ack, true).bytes, ack) << "a flag in this ACK would reach only the workers below this switch";
}

// --- directions

TEST_F(SwitchTest, ProbesGoUpAndAnswersGoDownToTheirWorker) {
    EXPECT_EQ(handle(down(ATP_TYPE_PROBE)).verdict.route, Route::up);
    atp_header wait = down(ATP_TYPE_WAIT);
    wait.worker = 2;
    const Verdict verdict = handle(wait).verdict;
    EXPECT_EQ(verdict.route, Route::down);
    EXPECT_EQ(verdict.worker, 2);
    EXPECT_EQ(verdict.units, 0x1U);
    EXPECT_EQ(handle(down(ATP_TYPE_ACK), {1, 2, 3}).verdict.worker, ATP_WORKER_ALL);
}

TEST_F(SwitchTest, FlushReturnsThePartialSumInItsBuffer) {
    (void)handle(gradient(0), {1, 2, 3});
    const Result result = handle(down(ATP_TYPE_FLUSH));
    EXPECT_EQ(result.verdict.route, Route::up);
    EXPECT_EQ(result.bytes.size(), ATP_HEADER_BYTES + 3 * ATP_LANE_BYTES);
    EXPECT_EQ(lanes_in(result.bytes), (Lanes{1, 2, 3}));
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, FlushWithoutRoomIsDroppedAndKeepsThePartialSum) {
    (void)handle(gradient(0), {1, 2, 3});
    const Result refused = handle(make_packet(down(ATP_TYPE_FLUSH)), false, ATP_HEADER_BYTES + 2 * ATP_LANE_BYTES);
    EXPECT_EQ(refused.verdict.route, Route::drop);
    EXPECT_EQ(machine.counters().no_room, 1U);
    EXPECT_EQ(machine.occupied(), 1U);
    EXPECT_EQ(lanes_in(handle(down(ATP_TYPE_FLUSH)).bytes), (Lanes{1, 2, 3}));
}

TEST_F(SwitchTest, FlushOfTheOtherLevelGoesDown) {
    (void)handle(gradient(0), {1, 2, 3});
    atp_header flush = down(ATP_TYPE_FLUSH);
    flush.hop = 1;
    EXPECT_EQ(handle(flush).verdict.route, Route::down);
    EXPECT_EQ(handle(make_packet(flush), false, ATP_HEADER_BYTES).verdict.route, Route::down)
        << "the switch only forwards the FLUSH, so the buffer needs no room for lanes";
    EXPECT_EQ(machine.counters().no_room, 0U);
    EXPECT_EQ(machine.occupied(), 1U);
}

// --- packets that do not fit this table

TEST_F(SwitchTest, GradientOfAHigherLevelPassesUnchanged) {
    for (const unsigned flags : {0U, unsigned{ATP_FLAG_WHOLE}, unsigned{ATP_FLAG_RESEND}}) {
        atp_header header = gradient(0, 0, flags);
        header.hop = 1;
        header.bitmap0 = header.mask0;
        header.mask1 = 0x3;
        const Bytes before = make_packet(header, {1, 2, 3});
        const Result result = handle(before);
        EXPECT_EQ(result.verdict.route, Route::up);
        EXPECT_EQ(result.bytes, before);
    }
    EXPECT_EQ(machine.occupied(), 0U);
    EXPECT_EQ(events(ATP_EVENT_PASSED), 3U);
}

TEST(Switch, SwitchBeforeADedicatedServerAddsNothing) {
    const ChannelConfig channel{.job = 1, .token = 0x5eed, .channel = 2, .lanes = 3, .window_log2 = 4};
    const Membership members = *Membership::star(2);
    Switch machine{{.aggregators = 4096, .lanes = 4, .jobs = 1, .ageing = std::chrono::milliseconds(10)}};
    ASSERT_TRUE(machine.admit(channel.job, channel.token, ATP_LEVELS));
    for (std::uint8_t hop = 0; hop <= ATP_LEVELS; ++hop) {
        for (const atp_type type : {ATP_TYPE_GRADIENT, ATP_TYPE_FLUSH}) {
            atp_header header = testing::gradient_of(channel, members, 0, 0);
            header.type = static_cast<std::uint8_t>(type);
            header.hop = hop;
            header.lanes =
                testing::lanes_field(header.type, type == ATP_TYPE_GRADIENT ? ATP_DTYPE_INT32 : ATP_DTYPE_NONE);
            const Bytes before = make_packet(header, type == ATP_TYPE_GRADIENT ? Lanes{1, 2, 3} : Lanes{});
            Bytes bytes = before;
            PacketBuffer packet_buffer{.data = bytes.data(),
                                       .size = static_cast<std::uint32_t>(bytes.size()),
                                       .capacity = static_cast<std::uint32_t>(bytes.size()),
                                       .congested = false,
                                       .verdict = {}};
            machine.handle_packet(packet_buffer, Time{});
            EXPECT_EQ(packet_buffer.verdict.route, type == ATP_TYPE_GRADIENT ? Route::up : Route::down);
            EXPECT_EQ(bytes, before);
        }
    }
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, IndexOutsideTheTableGoesToTheServerUnaggregated) {
    for (const std::uint32_t index : {8U, 9U, 0x7fffffffU, 0xffffffffU}) {
        atp_header header = gradient(0);
        header.index = index;
        const Result result = handle(header, {1, 2, 3});
        EXPECT_EQ(result.verdict.route, Route::up);
        EXPECT_EQ(header_in(result.bytes).flags & ATP_FLAG_BYPASS, ATP_FLAG_BYPASS);
        EXPECT_EQ(lanes_in(result.bytes), (Lanes{1, 2, 3}));
    }
    EXPECT_EQ(events(ATP_EVENT_MISFIT), 4U);
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, AckWithAnIndexOutsideTheTablePassesAndAFlushIsAbsorbed) {
    atp_header ack = down(ATP_TYPE_ACK);
    ack.index = 8;
    EXPECT_EQ(handle(ack, {1, 2, 3}).verdict.route, Route::down);
    atp_header flush = down(ATP_TYPE_FLUSH);
    flush.index = 0xffffffff;
    EXPECT_EQ(handle(flush).verdict.route, Route::drop);
    flush.hop = 1;
    EXPECT_EQ(handle(flush).verdict.route, Route::down);
}

TEST_F(SwitchTest, GradientWithMoreLanesThanAnAggregatorGoesToTheServerUnaggregated) {
    const Result result = handle(gradient(0), {1, 2, 3, 4, 5});
    EXPECT_EQ(result.verdict.route, Route::up);
    EXPECT_EQ(result.verdict.event, ATP_EVENT_MISFIT);
    EXPECT_EQ(lanes_in(result.bytes), (Lanes{1, 2, 3, 4, 5}));
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, GradientWithTheLanesOfAnAggregatorIsAdded) {
    for (std::uint16_t rank = 0; rank < 2; ++rank) (void)handle(gradient(rank), {1, 2, 3, 4});
    EXPECT_EQ(lanes_in(handle(gradient(2), {1, 2, 3, 4}).bytes), (Lanes{3, 6, 9, 12}));
}

TEST_F(SwitchTest, BypassOfALongPacketPassesUnchanged) {
    const atp_header header = gradient(0, 0, ATP_FLAG_BYPASS);
    const Bytes bytes = make_packet(header, {1, 2, 3, 4, 5});
    EXPECT_EQ(handle(bytes).bytes, bytes);
}

TEST(Switch, SwitchWithoutAggregatorsForwardsEveryPacket) {
    Switch machine({.aggregators = 0, .lanes = 4, .jobs = 1});
    ASSERT_TRUE(machine.admit(1, 7, 0));
    const ChannelConfig channel{.job = 1, .token = 7, .lanes = 2};
    Bytes bytes = make_packet(testing::gradient_of(channel, *Membership::star(2), 0, 0), {1, 2});
    const auto size = static_cast<std::uint32_t>(bytes.size());
    PacketBuffer packet_buffer{.data = bytes.data(), .size = size, .capacity = size, .congested = false, .verdict = {}};
    machine.handle_packet(packet_buffer, Time{});
    EXPECT_EQ(packet_buffer.verdict.route, Route::up);
    EXPECT_EQ(machine.occupied(), 0U);
}

// --- jobs

TEST_F(SwitchTest, PacketOfAnUnknownJobIsDroppedAndCountedAsForged) {
    channel.job = 2;
    EXPECT_EQ(handle(gradient(0), {1, 2, 3}).verdict.route, Route::drop);
    EXPECT_EQ(machine.counters().forged, 1U);
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, PacketOfAnotherIncarnationIsDroppedForEveryType) {
    (void)handle(gradient(0), {1, 2, 3});
    channel.token = 0x0dd;
    EXPECT_EQ(handle(gradient(1), {1, 2, 3}).verdict.route, Route::drop);
    EXPECT_EQ(handle(down(ATP_TYPE_ACK), {1, 2, 3}).verdict.route, Route::drop);
    EXPECT_EQ(handle(down(ATP_TYPE_NACK, ATP_FLAG_BYPASS)).verdict.route, Route::drop);
    EXPECT_EQ(handle(down(ATP_TYPE_FLUSH)).verdict.route, Route::drop);
    EXPECT_EQ(handle(down(ATP_TYPE_PROBE)).verdict.route, Route::drop);
    EXPECT_EQ(machine.counters().forged, 5U);
    EXPECT_EQ(machine.occupied(), 1U) << "the switch still holds the partial sum";
}

TEST_F(SwitchTest, RepeatedAdmissionSucceedsAndAnotherLevelIsRefused) {
    EXPECT_TRUE(machine.admit(1, 0x5eed, 0));
    EXPECT_FALSE(machine.admit(1, 0x5eed, 1));
    EXPECT_FALSE(machine.admit(9, 0, 0)) << "token 0 is invalid";
}

TEST_F(SwitchTest, JobBeyondTheTableIsRefused) {
    EXPECT_TRUE(machine.admit(2, 1, 0));
    EXPECT_TRUE(machine.admit(3, 1, 0));
    EXPECT_FALSE(machine.admit(4, 1, 0));
    machine.dismiss(2, 1);
    EXPECT_TRUE(machine.admit(4, 1, 0));
}

TEST_F(SwitchTest, IncarnationsOfAJobAreSeparateJobs) {
    ASSERT_TRUE(machine.admit(channel.job, 0x0dd, 0));
    (void)handle(gradient(0), {1, 2, 3});
    const std::uint64_t first = std::exchange(channel.token, 0x0dd);
    EXPECT_EQ(handle(gradient(1), {1, 2, 3}).verdict.route, Route::up) << "the aggregator belongs to the other job";
    EXPECT_EQ(machine.counters().forged, 0U);
    machine.dismiss(channel.job, 0x0dd);
    EXPECT_EQ(handle(gradient(2), {1, 2, 3}).verdict.route, Route::drop);
    channel.token = first;
    (void)handle(gradient(1), {10, 20, 30});
    const auto sum = handle(gradient(2), {100, 200, 300});
    EXPECT_EQ(sum.verdict.route, Route::up);
    EXPECT_EQ(lanes_in(sum.bytes), (Lanes{111, 222, 333}));
}

TEST(Switch, DismissalOfOneJobKeepsTheOthers) {
    constexpr std::uint32_t jobs = 40;
    for (std::uint32_t leaving = 0; leaving < jobs; ++leaving) {
        Switch machine({.aggregators = 1, .lanes = 1, .jobs = jobs});
        for (std::uint32_t job = 0; job < jobs; ++job) ASSERT_TRUE(machine.admit(job, job + 1, 0));
        machine.dismiss(leaving, leaving + 1);
        for (std::uint32_t job = 0; job < jobs; ++job) {
            EXPECT_EQ(machine.job_counters(job, job + 1) != nullptr, job != leaving);
        }
    }
}

TEST_F(SwitchTest, PacketOfADismissedJobIsForged) {
    machine.dismiss(channel.job, channel.token);
    EXPECT_EQ(handle(gradient(0), {1, 2, 3}).verdict.route, Route::drop);
    EXPECT_EQ(machine.counters().forged, 1U);
    EXPECT_EQ(machine.job_counters(channel.job, channel.token), nullptr);
}

TEST_F(SwitchTest, RestartForgetsPartialSumsAndKeepsJobs) {
    (void)handle(gradient(0), {1, 2, 3});
    machine.clear();
    EXPECT_EQ(machine.occupied(), 0U);
    for (std::uint16_t rank = 0; rank < 2; ++rank) (void)handle(gradient(rank), {5, 5, 5});
    EXPECT_EQ(lanes_in(handle(gradient(2), {5, 5, 5}).bytes), (Lanes{15, 15, 15}));
}

// --- untrusted bytes

TEST_F(SwitchTest, EachKindOfUndecodablePacketIsDroppedAndCountedByReason) {
    const Bytes good = make_packet(gradient(0), {1, 2, 3});
    const auto with = [&good](std::size_t offset, int value) {
        Bytes bytes = good;
        bytes.at(offset) = static_cast<std::byte>(value);
        return bytes;
    };
    const std::vector<std::pair<wire::DecodeError, Bytes>> bad = {
        {wire::DecodeError::truncated, Bytes(good.begin(), good.begin() + ATP_HEADER_BYTES - 1)},
        {wire::DecodeError::truncated, {}},
        {wire::DecodeError::version, with(ATP_OFFSET_VERSION, 0)},
        {wire::DecodeError::oversized, make_packet(gradient(0), Lanes(ATP_MAX_LANES + 1))},
        {wire::DecodeError::ragged, Bytes(good.begin(), good.end() - 1)},
        {wire::DecodeError::type, with(ATP_OFFSET_TYPE, 99)},
        {wire::DecodeError::flags, with(ATP_OFFSET_FLAGS, 0x20)},
        {wire::DecodeError::lanes, with(ATP_OFFSET_LANES, ATP_DTYPE_LAST + 1)},
        {wire::DecodeError::proof, make_packet(gradient(0, 0, ATP_FLAG_PROOF), Lanes(ATP_PROOF_LANES))},
        {wire::DecodeError::part, with(ATP_OFFSET_PART, 1)},
        {wire::DecodeError::hop, with(ATP_OFFSET_HOP, 3)},
        {wire::DecodeError::window, with(ATP_OFFSET_WINDOW, 17)},
        {wire::DecodeError::set, with(ATP_OFFSET_BITMAP0, 0x80)},
    };
    std::array<std::uint64_t, wire::decode_error_count> expected{};
    for (const auto& [reason, bytes] : bad) {
        EXPECT_EQ(handle(bytes).verdict.route, Route::drop);
        ++expected[static_cast<std::size_t>(reason)];
    }
    Bytes nobodys = good;
    wire::store_u64(&nobodys[ATP_OFFSET_TOKEN], 0);
    EXPECT_EQ(handle(nobodys).verdict.route, Route::drop);
    ++expected[static_cast<std::size_t>(wire::DecodeError::token)];
    EXPECT_EQ(machine.counters().refused, expected);
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchTest, RandomBytesAreDroppedAndCountedOnce) {
    Random random(1);
    constexpr int packets = 20'000;
    for (int i = 0; i < packets; ++i) {
        Bytes bytes(random.below(120));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
        if (bytes.size() > 1 && random.chance(0.5)) bytes[0] = std::byte{ATP_VERSION};
        EXPECT_EQ(handle(bytes).verdict.route, Route::drop);
    }
    std::uint64_t counted = machine.counters().forged;
    for (const std::uint64_t refused : machine.counters().refused) counted += refused;
    EXPECT_EQ(counted, static_cast<std::uint64_t>(packets));
    EXPECT_EQ(machine.occupied(), 0U);
}

// A packet of the admitted job with random values in some fields.
Bytes mutated(const ChannelConfig& channel, const Membership& members, Random& random) {
    atp_header header = testing::gradient_of(channel, members, random.below16(3), random.below(8));
    header.index = random.below(9);
    if (random.chance(0.5)) header.index = 0;
    if (random.chance(0.4)) header.type = static_cast<std::uint8_t>(1 + random.below(ATP_TYPE_LAST));
    const bool numeric = header.type <= ATP_TYPE_NACK;
    header.lanes = testing::lanes_field(header.type, numeric ? ATP_DTYPE_INT32 : ATP_DTYPE_NONE);
    for (unsigned flag = 1; flag <= ATP_FLAG_ALL; flag <<= 1U) {
        if (random.chance(0.1)) header.flags = static_cast<std::uint16_t>(header.flags | flag);
    }
    if (random.chance(0.1)) header.hop = static_cast<std::uint8_t>(random.below(3));
    if (random.chance(0.1))
        header.lanes = testing::lanes_field(header.type, static_cast<std::uint8_t>(random.below(5)));
    if (random.chance(0.1)) header.bitmap0 = random.below(8);
    if (random.chance(0.1)) header.bitmap1 = random.below(4);
    const bool has_lanes = header.type <= ATP_TYPE_ACK;
    const std::uint32_t lanes = random.chance(0.1) ? random.below(6) : 3;
    return make_packet(header, Lanes(has_lanes ? lanes : 0, random.number()));
}

TEST_F(SwitchTest, RandomPacketsOfAnAdmittedJobStayWithinTheTable) {
    Random random(2);
    for (int i = 0; i < 50'000; ++i) {
        const Result result = handle(mutated(channel, members, random), random.chance(0.5));
        now += std::chrono::microseconds(random.below(100));
        ASSERT_LE(machine.occupied(), 8U);
        wire::Packet packet;
        Bytes out = result.bytes;
        if (result.verdict.route == Route::drop) continue;
        ASSERT_EQ(wire::decode(out, packet), wire::DecodeError::none) << "a forwarded packet decodes";
    }
    for (unsigned event = 0; event < ATP_EVENT_COUNT; ++event) {
        if (event == ATP_EVENT_SINGLE || event == ATP_EVENT_SUPERSEDED || event == ATP_EVENT_TAKEN_OVER ||
            event == ATP_EVENT_EXPIRED)
            continue;  // these events need other masks, a fragment one window away, or more time
        EXPECT_GT(machine.counters().events[event], 0U) << "no event of kind " << event << " occurred";
    }
}

// --- batches

TEST_F(SwitchTest, BatchGivesTheSameResultAsItsPacketsOneByOne) {
    Switch one_by_one(machine.config());
    ASSERT_TRUE(one_by_one.admit(channel.job, channel.token, 0));
    Random random(3);
    std::vector<Bytes> buffers;
    for (int i = 0; i < 100; ++i) {
        buffers.push_back(make_packet(gradient(random.below16(3), random.below(20)), {random.number(), 1, 2}));
    }
    std::vector<Bytes> copies = buffers;
    std::vector<PacketBuffer> packet_buffers;
    for (Bytes& bytes : buffers) {
        const auto size = static_cast<std::uint32_t>(bytes.size());
        packet_buffers.push_back(
            {.data = bytes.data(), .size = size, .capacity = size, .congested = false, .verdict = {}});
    }
    machine.handle_batch(packet_buffers, now);
    for (std::size_t i = 0; i < copies.size(); ++i) {
        const auto size = static_cast<std::uint32_t>(copies[i].size());
        PacketBuffer packet_buffer{
            .data = copies[i].data(), .size = size, .capacity = size, .congested = false, .verdict = {}};
        one_by_one.handle_packet(packet_buffer, now);
        EXPECT_EQ(packet_buffer.verdict.event, packet_buffers[i].verdict.event);
        EXPECT_EQ(packet_buffer.verdict.route, packet_buffers[i].verdict.route);
        EXPECT_EQ(copies[i], buffers[i]);
    }
}

TEST_F(SwitchTest, EmptyBatchChangesNothing) {
    machine.handle_batch({}, now);
    EXPECT_EQ(machine.counters().forged, 0U);
}

}  // namespace
}  // namespace atp::protocol
