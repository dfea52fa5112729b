// SPDX-License-Identifier: Apache-2.0
#include "emulation/emulated_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace atp::emulation {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr PortConfig gigabit{.rate_bits_per_s = 1'000'000'000, .overhead_bytes = 0};  // a byte takes 8 ns

PortConfig with_queue(std::uint64_t queue_bytes) {
    PortConfig config = gigabit;
    config.queue_bytes = queue_bytes;
    return config;
}

PortConfig losing(double share) { return {.loss = share}; }

bool dropped_full(EmulatedPort& port, std::uint32_t bytes, Time now) {
    return port.admit(bytes, now).verdict == Verdict::drop_full;
}

TEST(EmulatedPort, PacketDepartsAfterItsSerialisation) {
    EmulatedPort port(gigabit, 1);
    const Admission admission = port.admit(1000, Time(microseconds(5)));
    EXPECT_EQ(admission.verdict, Verdict::hold);
    EXPECT_EQ(admission.departs, Time(microseconds(5 + 8)));
    EXPECT_FALSE(admission.mark);
}

TEST(EmulatedPort, OverheadOfEachPacketDelaysItsDeparture) {
    PortConfig config = gigabit;
    config.overhead_bytes = frame_overhead_bytes;
    EmulatedPort frames(config, 1);
    EXPECT_EQ(frames.admit(306, Time()).departs, Time(nanoseconds((306 + 46) * 8)));
    EXPECT_EQ(frames.counters().bytes, 352U);
    config.overhead_bytes = cable_overhead_bytes;
    EmulatedPort cable(config, 1);
    EXPECT_EQ(cable.admit(306, Time()).departs, Time(nanoseconds((306 + 66) * 8)));
}

TEST(EmulatedPort, PacketsQueueAndTheQueueDrains) {
    EmulatedPort port(gigabit, 1);
    EXPECT_EQ(port.admit(1000, Time()).departs, Time(microseconds(8)));
    EXPECT_EQ(port.admit(500, Time()).departs, Time(microseconds(12)));
    EXPECT_EQ(port.backlog_bytes(Time()), 1500U);
    EXPECT_EQ(port.backlog_bytes(Time(microseconds(8))), 500U);
    EXPECT_FALSE(port.idle(Time(nanoseconds(11'999))));
    EXPECT_TRUE(port.idle(Time(microseconds(12))));
    EXPECT_EQ(port.admit(500, Time(microseconds(100))).departs, Time(microseconds(104)));
}

TEST(EmulatedPort, PortWithoutARatePassesPacketsAtOnce) {
    EmulatedPort port({.queue_bytes = 100, .ecn_bytes = 10}, 1);
    for (int nth = 0; nth < 100; ++nth) {
        const Admission admission = port.admit(1000, Time(microseconds(3)));
        EXPECT_EQ(admission.verdict, Verdict::pass_now);
        EXPECT_EQ(admission.departs, Time(microseconds(3)));
        EXPECT_FALSE(admission.mark) << "there is no queue";
    }
    EXPECT_TRUE(port.idle(Time(microseconds(3))));
    EXPECT_EQ(port.counters().passed, 100U);
}

TEST(EmulatedPort, OnlyARateOrLossNeedsEmulation) {
    EXPECT_FALSE(emulates(PortConfig{.queue_bytes = 1000, .ecn_bytes = 100}));
    EXPECT_TRUE(emulates(PortConfig{.rate_bits_per_s = 1}));
    EXPECT_TRUE(emulates(PortConfig{.loss = 0.001}));
}

class PortAtRate : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Real, PortAtRate,
                         testing::Values(9'600, 999'999'937, 1'000'000'000, 3'000'000'000, 7'777'777'777,
                                         400'000'000'000));
class PortAtAnyRate : public PortAtRate {};
INSTANTIATE_TEST_SUITE_P(Real, PortAtAnyRate, testing::Values(9'600, 999'999'937, 1'000'000'000, 400'000'000'000));
INSTANTIATE_TEST_SUITE_P(Absurd, PortAtAnyRate, testing::Values(1, 9'000'000'000'000'000));

// A million packets back to back: the last one departs when the bits of all are sent, without accumulated rounding.
TEST_P(PortAtAnyRate, MillionPacketsDepartWithoutAccumulatedRounding) {
    constexpr std::uint64_t wire_bytes = 352;
    const auto rate = static_cast<std::uint64_t>(GetParam());
    EmulatedPort port({.rate_bits_per_s = GetParam(), .overhead_bytes = 46}, 1);
    for (std::uint64_t nth = 1; nth <= 1'000'000; ++nth) {
        const Admission admission = port.admit(wire_bytes - 46, Time());
        const std::uint64_t exact_ns = (nth * wire_bytes * 8'000'000'000ULL + rate - 1) / rate;
        ASSERT_EQ(admission.departs, Time(nanoseconds(exact_ns))) << nth;
    }
    EXPECT_EQ(port.counters().bytes, 352'000'000U);
}

// The same port with integers so wide that no product is rounded. Quotients are rounded up, as in the port.
class ExactPort {
  public:
    explicit ExactPort(const PortConfig& config) : config_(config) {}

    Admission admit(std::uint32_t bytes, Time now) {
        const Wide wire_bytes = Wide{bytes} + config_.overhead_bytes;
        const Wide now_work = work_at(now);
        const Wide backlog = std::max(busy_until_work_ - now_work, Wide{0});
        if (backlog + wire_bytes * byte_work > config_.queue_bytes * byte_work) return {.verdict = Verdict::drop_full};
        busy_until_work_ = now_work + backlog + wire_bytes * byte_work;
        const Wide departs_ns = (busy_until_work_ + config_.rate_bits_per_s - 1) / config_.rate_bits_per_s;
        return {.verdict = Verdict::hold,
                .mark = backlog > config_.ecn_bytes * byte_work,
                .departs = Time(nanoseconds(static_cast<std::int64_t>(departs_ns)))};
    }
    [[nodiscard]] std::uint64_t backlog_bytes(Time now) const {
        const Wide backlog = std::max(busy_until_work_ - work_at(now), Wide{0});
        return static_cast<std::uint64_t>((backlog + byte_work - 1) / byte_work);
    }

  private:
    __extension__ using Wide = __int128;
    static constexpr Wide byte_work = 8'000'000'000;

    // Work that the port could have done since time 0.
    [[nodiscard]] Wide work_at(Time now) const {
        return Wide{now.time_since_epoch().count()} * config_.rate_bits_per_s;
    }

    PortConfig config_;
    Wide busy_until_work_ = 0;
};

// Random arrivals at a load around the rate, years after time 0.
TEST_P(PortAtRate, RandomArrivalsMatchExactArithmetic) {
    const PortConfig config{.rate_bits_per_s = GetParam(), .queue_bytes = 20'000, .ecn_bytes = 6'000};
    EmulatedPort port(config, 1);
    ExactPort exact(config);
    std::mt19937_64 random(7);
    Time now(std::chrono::hours(24 * 365 * 3));
    std::uint64_t drops = 0;
    std::uint64_t marks = 0;
    for (int nth = 0; nth < 100'000; ++nth) {
        const auto bytes = static_cast<std::uint32_t>(random() % 1473);
        const double mean_ns = (1473.0 / 2 + config.overhead_bytes) * 8e9 / static_cast<double>(GetParam());
        now += nanoseconds(static_cast<std::int64_t>(static_cast<double>(random() % 2000) / 1000 * mean_ns));
        const Admission expected = exact.admit(bytes, now);
        const Admission admission = port.admit(bytes, now);
        ASSERT_EQ(admission.verdict, expected.verdict) << nth;
        ASSERT_EQ(port.backlog_bytes(now), exact.backlog_bytes(now)) << nth;
        drops += admission.verdict == Verdict::drop_full ? 1 : 0;
        if (admission.verdict == Verdict::drop_full) continue;
        ASSERT_EQ(admission.departs, expected.departs) << nth;
        ASSERT_EQ(admission.mark, expected.mark) << nth;
        marks += admission.mark ? 1 : 0;
    }
    EXPECT_EQ(port.counters().dropped_full, drops);
    EXPECT_EQ(port.counters().marked, marks);
    EXPECT_EQ(port.counters().passed, 100'000 - drops);
    EXPECT_GT(drops, 0U) << "the queue was never full: the test tests little";
    EXPECT_GT(marks, drops);
}

TEST(EmulatedPort, PacketBeyondTheQueueIsDroppedAndTakesNoTime) {
    EmulatedPort port(with_queue(2500), 1);
    EXPECT_FALSE(dropped_full(port, 1000, Time()));
    EXPECT_FALSE(dropped_full(port, 1000, Time()));
    EXPECT_TRUE(dropped_full(port, 501, Time()));
    EXPECT_FALSE(dropped_full(port, 500, Time())) << "the packet fills the queue exactly";
    EXPECT_TRUE(dropped_full(port, 1, Time()));
    EXPECT_TRUE(dropped_full(port, 1000, Time(nanoseconds(7'999))));
    EXPECT_FALSE(dropped_full(port, 1000, Time(microseconds(8)))) << "one has left, and its room is free";
    EXPECT_EQ(port.counters().dropped_full, 3U);
    EXPECT_EQ(port.counters().bytes, 3500U);
    EXPECT_EQ(port.backlog_bytes(Time(microseconds(8))), 2500U);
}

TEST(EmulatedPort, PacketLongerThanTheQueueIsDropped) {
    EmulatedPort port(with_queue(1000), 1);
    EXPECT_TRUE(dropped_full(port, 1001, Time()));
    EXPECT_TRUE(dropped_full(port, ~std::uint32_t{0}, Time()));
    EXPECT_FALSE(dropped_full(port, 1000, Time()));
}

TEST(EmulatedPort, QueueWithoutAConfiguredLimitHoldsMostQueueBytes) {
    EmulatedPort port({.rate_bits_per_s = 1, .overhead_bytes = 0}, 1);
    constexpr std::uint32_t packet_bytes = 1 << 16;
    for (std::uint64_t bytes = 0; bytes < most_queue_bytes; bytes += packet_bytes) {
        ASSERT_FALSE(dropped_full(port, packet_bytes, Time())) << bytes;
    }
    EXPECT_TRUE(dropped_full(port, 1, Time()));
    EXPECT_EQ(port.backlog_bytes(Time()), most_queue_bytes);
}

TEST(EmulatedPort, PacketThatFindsMoreThanTheThresholdIsMarked) {
    PortConfig config = gigabit;
    config.ecn_bytes = 1000;
    EmulatedPort port(config, 1);
    EXPECT_FALSE(port.admit(1000, Time()).mark);
    EXPECT_FALSE(port.admit(1000, Time()).mark) << "exactly at the threshold";
    EXPECT_TRUE(port.admit(1000, Time()).mark);
    EXPECT_TRUE(port.admit(0, Time(nanoseconds(15'999))).mark);
    EXPECT_FALSE(port.admit(1000, Time(microseconds(16))).mark) << "two have left";
    EXPECT_EQ(port.counters().marked, 2U);
}

TEST(EmulatedPort, PortWithoutAThresholdMarksNoPacket) {
    EmulatedPort port(gigabit, 1);
    for (int nth = 0; nth < 10'000; ++nth) ASSERT_FALSE(port.admit(1472, Time()).mark);
}

std::vector<bool> losses(EmulatedPort port, int packets) {
    std::vector<bool> lost(static_cast<std::size_t>(packets));
    for (auto packet : lost) packet = port.admit(306, Time()).verdict == Verdict::drop_loss;
    return lost;
}

// Five standard deviations of a binomial distribution on each side. The seeds are fixed, so the result is
// deterministic.
TEST(EmulatedPort, LossMatchesItsShareForEverySeed) {
    constexpr int packets = 100'000;
    for (const double share : {0.001, 0.01, 0.3, 0.9}) {
        const double mean = packets * share;
        const double bound = 5 * std::sqrt(mean * (1 - share));
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            const auto lost = losses(EmulatedPort(losing(share), seed), packets);
            EXPECT_NEAR(static_cast<double>(std::ranges::count(lost, true)), mean, bound) << share << ' ' << seed;
        }
    }
}

// The losses in windows of 100 packets vary as independent losses do: there are neither bursts nor periods.
TEST(EmulatedPort, LossesAreIndependent) {
    const auto lost = losses(EmulatedPort(losing(0.1), 3), 100'000);
    double squares = 0;
    for (auto window = lost.begin(); window != lost.end(); window += 100) {
        const auto distance = static_cast<double>(std::count(window, window + 100, true)) - 10;
        squares += distance * distance;
    }
    EXPECT_NEAR(squares / 1000, 9, 2) << "the variance of 100 packets, each lost with a chance of 0.1";
}

TEST(EmulatedPort, LossesDependOnTheSeed) {
    const auto first = losses(EmulatedPort(losing(0.1), 1), 1000);
    EXPECT_EQ(losses(EmulatedPort(losing(0.1), 1), 1000), first);
    EXPECT_NE(losses(EmulatedPort(losing(0.1), 2), 1000), first);
    EXPECT_NE(losses(EmulatedPort(losing(0.1), 1, 1), 1000), first);
    EXPECT_NE(losses(EmulatedPort(losing(0.1), 2), 1000), losses(EmulatedPort(losing(0.1), 1, 1), 1000));
}

TEST(EmulatedPort, LossShare1DropsAllPacketsAndShare0DropsNone) {
    EXPECT_EQ(std::ranges::count(losses(EmulatedPort(losing(1), 1), 10'000), false), 0);
    EXPECT_EQ(std::ranges::count(losses(EmulatedPort(losing(0), 1), 10'000), true), 0);
}

TEST(EmulatedPort, LostPacketTakesItsTimeOnTheCable) {
    PortConfig config = gigabit;
    config.loss = 1;
    EmulatedPort port(config, 1);
    EXPECT_EQ(port.admit(1000, Time()).verdict, Verdict::drop_loss);
    EXPECT_EQ(port.backlog_bytes(Time()), 1000U);
    EXPECT_EQ(port.counters().dropped_loss, 1U);
    EXPECT_EQ(port.counters().passed, 0U);
    EXPECT_EQ(port.counters().bytes, 0U);
}

PortConfig early_by(Duration early) {
    PortConfig config = gigabit;
    config.early = early;
    return config;
}

TEST(EmulatedPort, IdlePortPassesPacketsThatDepartSoon) {
    EmulatedPort port(early_by(microseconds(50)), 1);
    for (int nth = 1; nth <= 6; ++nth) EXPECT_EQ(port.admit(1000, Time()).verdict, Verdict::pass_now) << nth;
    const Admission seventh = port.admit(1000, Time());
    EXPECT_EQ(seventh.verdict, Verdict::hold);
    EXPECT_EQ(seventh.departs, Time(microseconds(56))) << "those that passed took their time nevertheless";
}

TEST(EmulatedPort, HeldPacketIsNotOvertaken) {
    EmulatedPort port(early_by(microseconds(50)), 1);
    for (int nth = 1; nth <= 7; ++nth) static_cast<void>(port.admit(1000, Time()));  // the last is held until 56 us
    EXPECT_EQ(port.admit(100, Time(nanoseconds(55'000))).verdict, Verdict::hold) << "it may depart soon, but not first";
    EXPECT_EQ(port.admit(100, Time(nanoseconds(56'800))).verdict, Verdict::pass_now);
}

TEST(EmulatedPort, EarlyPassingKeepsDeparturesAndMarks) {
    PortConfig config = early_by(microseconds(50));
    config.queue_bytes = 9000;
    config.ecn_bytes = 3000;
    EmulatedPort early(config, 1);
    config.early = {};
    EmulatedPort late(config, 1);
    std::mt19937_64 random(5);
    Time now;
    for (int nth = 0; nth < 10'000; ++nth) {
        now += nanoseconds(random() % 12'000);
        const auto bytes = static_cast<std::uint32_t>(random() % 1473);
        const Admission first = early.admit(bytes, now);
        const Admission second = late.admit(bytes, now);
        ASSERT_EQ(first.departs, second.departs);
        ASSERT_EQ(first.mark, second.mark);
        ASSERT_EQ(first.verdict == Verdict::drop_full, second.verdict == Verdict::drop_full);
    }
}

}  // namespace
}  // namespace atp::emulation
