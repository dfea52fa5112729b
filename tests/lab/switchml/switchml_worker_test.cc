// SPDX-License-Identifier: Apache-2.0
#include "switchml/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/switchml_network.h"

namespace atp::switchml {
namespace {

using namespace std::chrono_literals;
using namespace atp::switchml;
using atp::testing::Bytes;

constexpr JobConfig pair{.job = 3, .workers = 2, .slots_log2 = 1, .lanes = 4};
constexpr Time start{1h};

// One worker that sums floats alone: the test acts as the switch.
class Bench {
  public:
    explicit Bench(std::vector<float> input, const JobConfig& job = pair, float scale = 1000)
        : worker(config_of(job, scale)),
          output(input.size()),
          input_(std::move(input)),
          tensor_(input_, output, scale) {
        EXPECT_TRUE(worker.submit(tensor_, start, start + 1s));
    }

    std::optional<Bytes> transmit(Time now = start) {
        Bytes buffer(worker.packet_bytes());
        if (!worker.poll_transmit(buffer, now)) return std::nullopt;
        return buffer;
    }
    // Returns the update as the result, as if the worker were alone.
    void echo(Bytes bytes, Time now = start) {
        bytes[offset_flags] |= std::byte{flag_result};
        worker.handle_packet(bytes, false, now);
    }
    static Header header_in(const Bytes& bytes) {
        Bytes copy = bytes;
        Packet packet;
        EXPECT_EQ(decode(copy, packet), DecodeError::none);
        return packet.header;
    }

    Worker worker;
    std::vector<float> output;

  private:
    static WorkerConfig config_of(const JobConfig& job, float scale) {
        WorkerConfig config;
        config.job = job;
        config.rank = 1;
        config.scale = double{scale};
        return config;
    }
    std::vector<float> input_;
    protocol::FloatTensor tensor_;
};

TEST(SwitchMlWorker, FragmentsInFlightAreOnePerSlotAndEachResultReleasesTheNext) {
    Bench bench(std::vector<float>(20, 1.0F));
    const Bytes first = *bench.transmit();
    const Bytes second = *bench.transmit();
    EXPECT_FALSE(bench.transmit());
    EXPECT_EQ(first.size(), header_bytes + 16);
    EXPECT_EQ(Bench::header_in(first), (Header{.flags = 0, .job = 3, .worker = 1, .slot = 0, .offset = 0}));
    EXPECT_EQ(Bench::header_in(second), (Header{.flags = 0, .job = 3, .worker = 1, .slot = 1, .offset = 1}));
    bench.echo(second);
    const Bytes third = *bench.transmit();
    EXPECT_EQ(Bench::header_in(third), (Header{.flags = flag_version, .job = 3, .worker = 1, .slot = 1, .offset = 3}));
    bench.echo(third);
    EXPECT_FALSE(bench.transmit()) << "slot 1 has no fragment left";
}

TEST(SwitchMlWorker, NumbersAreScaledInBothDirections) {
    Bench bench({1.5F, -2.25F, 0.0F, 1000.0F, 0.001F});
    while (const auto update = bench.transmit()) bench.echo(*update);
    EXPECT_EQ(bench.output, (std::vector<float>{1.5F, -2.25F, 0.0F, 1000.0F, 0.001F}));
    EXPECT_EQ(bench.worker.poll_event()->kind, WorkerEvent::Kind::completed);
}

TEST(SwitchMlWorker, LastPacketOfATensorIsPaddedWithZeros) {
    Bench bench({1.0F});
    const Bytes update = *bench.transmit();
    EXPECT_EQ(update.size(), bench.worker.packet_bytes());
    for (std::size_t at = header_bytes + 4; at < update.size(); ++at) EXPECT_EQ(update[at], std::byte{0});
}

TEST(SwitchMlWorker, JobNumberMayBeSetBeforeTheFirstPacket) {
    std::vector<float> numbers(4, 1.0F);
    protocol::FloatTensor tensor(numbers, numbers, 1000);
    Worker worker({.job = pair});
    worker.set_job(200);
    ASSERT_TRUE(worker.submit(tensor, start));
    Bytes update(worker.packet_bytes());
    ASSERT_TRUE(worker.poll_transmit(update, start));
    EXPECT_EQ(Bench::header_in(update).job, 200);
}

// Only the first `elements_ready` elements can be read.
class SlowTensor final : public protocol::PlainTensor {
  public:
    [[nodiscard]] std::uint64_t size() const override { return 24; }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return first + count <= elements_ready;
    }
    void store(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) override {}

    std::uint64_t elements_ready = 0;

  protected:
    void load(std::uint64_t /*first*/, std::span<std::byte> lanes) const override {
        std::ranges::fill(lanes, std::byte{0});
    }
};

TEST(SwitchMlWorker, ReadableFragmentsAreSentPastUnreadableOnes) {
    SlowTensor tensor;
    JobConfig job = pair;  // 4 lanes, 2 slots: 6 fragments of this tensor
    Worker worker({.job = job, .rank = 1, .scale = 1});
    ASSERT_TRUE(worker.submit(tensor, start, start + 1s));
    const auto sent = [&](Time now) {
        std::vector<std::uint32_t> offsets;
        Bytes update(worker.packet_bytes());
        while (worker.poll_transmit(update, now)) offsets.push_back(Bench::header_in(update).offset);
        return offsets;
    };
    using Offsets = std::vector<std::uint32_t>;
    EXPECT_EQ(sent(start), Offsets{});
    EXPECT_EQ(worker.poll_timeout(), start + 1s) << "nothing was sent that could be lost";
    tensor.elements_ready = 7;  // nearly two fragments
    EXPECT_EQ(sent(start), Offsets{0});
    worker.handle_timeout(start + 1ms);
    EXPECT_EQ(sent(start + 1ms), Offsets{0}) << "what others wait for does not wait";
    tensor.elements_ready = 12;
    EXPECT_EQ(sent(start + 1ms), Offsets{1});
    const auto answer = [&](std::uint32_t offset) {
        Bytes result(worker.packet_bytes());
        const auto version = static_cast<std::uint8_t>(job.version(offset));
        encode_header({.flags = static_cast<std::uint8_t>(flag_result | version),
                       .job = 3,
                       .worker = 0,
                       .slot = job.slot(offset),
                       .offset = offset},
                      result);
        worker.handle_packet(result, false, start + 1ms);
    };
    answer(1);
    EXPECT_EQ(sent(start + 1ms), Offsets{}) << "fragment 3 cannot be read yet";
    answer(0);
    EXPECT_EQ(sent(start + 1ms), Offsets{2}) << "an earlier one that came later can";
    tensor.elements_ready = 24;
    EXPECT_EQ(sent(start + 1ms), Offsets{3});
}

TEST(SwitchMlWorker, HalvesKeepElevenBits) {
    JobConfig job = pair;
    job.halves = true;
    Bench bench({1.0F, -3.0F, 0.125F, 1234.567F}, job);
    const Bytes update = *bench.transmit();
    EXPECT_EQ(update.size(), header_bytes + 8);
    bench.echo(update);
    EXPECT_EQ(bench.output[0], 1.0F);
    EXPECT_EQ(bench.output[1], -3.0F) << "3,000 has 12 bits, the last of them 0";
    EXPECT_EQ(bench.output[2], 0.125F);
    EXPECT_NEAR(bench.output[3], 1234.567F, 1234.567F / 2048);
}

TEST(SwitchMlWorker, PlainIntegersAsHalvesAreRefused) {
    JobConfig job = pair;
    job.halves = true;
    Worker worker({.job = job});
    std::vector<std::int32_t> numbers(3);
    atp::testing::IntegerTensor tensor(numbers, numbers);
    EXPECT_FALSE(worker.submit(tensor, start));
}

TEST(SwitchMlWorker, UpdateIsResentAtItsTimeout) {
    Bench bench({1.0F, 2.0F, 3.0F, 4.0F, 5.0F});
    const Bytes first = *bench.transmit(start);
    ASSERT_TRUE(bench.transmit(start + 400us));
    EXPECT_EQ(bench.worker.poll_timeout(), start + 1ms);
    bench.worker.handle_timeout(start + 999us);
    EXPECT_FALSE(bench.transmit(start + 999us));
    bench.worker.handle_timeout(start + 1ms);
    EXPECT_EQ(bench.transmit(start + 1ms), first) << "the very same packet";
    EXPECT_FALSE(bench.transmit(start + 1ms));
    EXPECT_EQ(bench.worker.poll_timeout(), start + 1400us);
    EXPECT_EQ(bench.worker.counters().resent, 1U);
}

TEST(SwitchMlWorker, ResultCancelsAQueuedResend) {
    Bench bench({1.0F, 2.0F, 3.0F, 4.0F});
    const Bytes update = *bench.transmit();
    bench.worker.handle_timeout(start + 1ms);
    bench.echo(update, start + 1ms);
    EXPECT_FALSE(bench.transmit(start + 1ms));
    EXPECT_TRUE(bench.worker.poll_event());
    EXPECT_EQ(bench.worker.poll_timeout(), never);
}

TEST(SwitchMlWorker, WithoutRecoveryThereIsOnlyTheDeadlineTimer) {
    JobConfig job = pair;
    job.mode = Mode::lossless;
    Bench bench({1.0F}, job);
    ASSERT_TRUE(bench.transmit());
    EXPECT_EQ(bench.worker.poll_timeout(), start + 1s) << "the deadline alone";
    bench.worker.handle_timeout(start + 5ms);
    EXPECT_FALSE(bench.transmit(start + 5ms));
}

TEST(SwitchMlWorker, RepeatedOrForeignResultIsIgnored) {
    Bench bench(std::vector<float>(20, 1.0F));
    const Bytes first = *bench.transmit();
    const auto handled = [&](std::size_t at, std::uint8_t value) {
        Bytes changed = first;
        changed[offset_flags] = std::byte{flag_result};
        changed[at] = std::byte{value};
        bench.worker.handle_packet(changed, false, start);
    };
    handled(offset_flags, 0);                          // an update
    handled(offset_job, 4);                            // another job's
    handled(offset_slot, 0x80);                        // no slot
    handled(offset_flags, flag_result | flag_halves);  // lanes of another width
    handled(offset_offset + 3, 2);                     // a fragment that was never sent
    handled(offset_slot + 1, 1);                       // a slot that has sent nothing yet
    bench.worker.handle_packet({}, false, start);
    EXPECT_EQ(bench.worker.counters().forged, 2U);
    EXPECT_EQ(bench.worker.counters().refused, 3U);
    EXPECT_EQ(bench.worker.counters().stale_results, 2U);
    EXPECT_EQ(bench.worker.counters().results, 0U);
    bench.echo(first);
    bench.echo(first);
    EXPECT_EQ(bench.worker.counters().results, 1U);
    EXPECT_EQ(bench.worker.counters().stale_results, 3U);
}

TEST(SwitchMlWorker, NumberOutsideTheScaleEndsItsTensorAndTheJobContinues) {
    for (const float bad : {1e30F, -3e6F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
        Bench bench({1.0F, bad, 3.0F, 4.0F, 5.0F});
        while (const auto update = bench.transmit()) bench.echo(*update);
        const auto event = bench.worker.poll_event();
        ASSERT_TRUE(event);
        EXPECT_EQ(event->kind, WorkerEvent::Kind::overflowed);
        EXPECT_EQ(bench.worker.counters().misfit_fragments, 1U);
        EXPECT_EQ(bench.worker.counters().overflowed, 1U);
        EXPECT_FALSE(bench.worker.failed());
    }
}

TEST(SwitchMlWorker, PassedDeadlineFailsEveryTensor) {
    Bench bench({1.0F});
    ASSERT_TRUE(bench.transmit());
    bench.worker.handle_timeout(start + 1s);
    EXPECT_TRUE(bench.worker.failed());
    const auto event = bench.worker.poll_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, WorkerEvent::Kind::timed_out);
    EXPECT_EQ(event->elapsed, 1s);
    EXPECT_FALSE(event->answered);
    EXPECT_FALSE(bench.transmit(start + 1s));
    EXPECT_EQ(bench.worker.poll_timeout(), never);
}

TEST(SwitchMlWorker, BufferShorterThanAPacketTransmitsNothing) {
    Bench bench({1.0F});
    Bytes small(bench.worker.packet_bytes() - 1);
    EXPECT_FALSE(bench.worker.poll_transmit(small, start));
    EXPECT_TRUE(bench.transmit());
}

TEST(SwitchMlWorker, TensorBeyondTheQueueIsRefused) {
    Worker worker({.job = pair, .tensors = 1});
    std::vector<std::int32_t> numbers(3);
    std::vector<std::int32_t> none;
    atp::testing::IntegerTensor tensor(numbers, numbers);
    atp::testing::IntegerTensor empty(none, none);
    EXPECT_FALSE(worker.submit(empty, start));
    EXPECT_EQ(worker.submit(tensor, start), 0U);
    EXPECT_FALSE(worker.submit(tensor, start));
}

}  // namespace
}  // namespace atp::switchml
