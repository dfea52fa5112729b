// SPDX-License-Identifier: Apache-2.0
#include "switchml/switch.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/packets.h"
#include "wire/packet.h"

namespace atp::switchml {
namespace {

using namespace atp::switchml;
using atp::testing::Bytes;
using Lanes = std::vector<std::int32_t>;

constexpr JobConfig pair{.job = 5, .workers = 2, .slots_log2 = 1, .lanes = 3};

JobConfig in_mode(Mode mode) {
    JobConfig job = pair;
    job.mode = mode;
    return job;
}

Header header_of(const JobConfig& job, std::uint8_t worker, std::uint32_t offset) {
    return {.flags = job.version(offset) != 0 ? std::uint8_t{flag_version} : std::uint8_t{0},
            .job = job.job,
            .worker = worker,
            .slot = job.slot(offset),
            .offset = offset};
}

Bytes packet_of(const Header& header, const Lanes& lanes) {
    Bytes bytes(header_bytes + lanes.size() * int32_lane_bytes);
    encode_header(header, bytes);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        wire::store_u32(bytes.data() + header_bytes + 4 * lane, static_cast<std::uint32_t>(lanes[lane]));
    }
    return bytes;
}

// The outcome of a packet, and the packet.
struct Outcome {
    Verdict verdict;
    Header header;
    Lanes lanes;
};

class Bench {
  public:
    explicit Bench(const JobConfig& job = pair) : job_(job), machine({.slots = 8, .lanes = 4}) {
        EXPECT_TRUE(machine.admit(job));
    }
    Outcome send(std::uint8_t worker, std::uint32_t offset, const Lanes& lanes) {
        return send(header_of(job_, worker, offset), lanes);
    }
    Outcome send(const Header& header, const Lanes& lanes) {
        Bytes bytes = packet_of(header, lanes);
        Outcome outcome{machine.handle_packet(bytes), {}, {}};
        Packet packet;
        if (decode(bytes, packet) != DecodeError::none) return outcome;
        outcome.header = packet.header;
        for (std::size_t at = 0; at < packet.lanes.size(); at += int32_lane_bytes) {
            outcome.lanes.push_back(static_cast<std::int32_t>(wire::load_u32(packet.lanes.data() + at)));
        }
        return outcome;
    }
    Event event(std::uint8_t worker, std::uint32_t offset) { return send(worker, offset, {1, 2, 3}).verdict.event; }

  private:
    JobConfig job_;

  public:
    Switch machine;
};

class EveryMode : public ::testing::TestWithParam<Mode> {};
std::string name_of(const ::testing::TestParamInfo<Mode>& mode) {
    constexpr std::array names{"Lossless", "Faithful", "ComparesOffsets"};
    return names.at(static_cast<std::size_t>(mode.param));
}

INSTANTIATE_TEST_SUITE_P(SwitchMl, EveryMode, ::testing::Values(Mode::lossless, Mode::faithful, Mode::compares_offsets),
                         name_of);

TEST_P(EveryMode, PacketOfTheLastWorkerLeavesAsTheSumForAll) {
    Bench bench(in_mode(GetParam()));
    const Outcome first = bench.send(0, 0, {1, -2, 1000});
    EXPECT_EQ(first.verdict.route, Route::drop);
    EXPECT_EQ(first.verdict.event, Event::gathered);
    const Outcome last = bench.send(1, 0, {10, 20, 30});
    EXPECT_EQ(last.verdict.route, Route::everybody);
    EXPECT_EQ(last.verdict.event, Event::completed);
    EXPECT_EQ(last.verdict.job, 5);
    EXPECT_EQ(last.lanes, (Lanes{11, 18, 1030}));
    EXPECT_TRUE(last.header.result());
    EXPECT_FALSE(last.header.overflowed());
    EXPECT_EQ(last.header.slot, 0);
    EXPECT_EQ(last.header.offset, 0U);
}

TEST_P(EveryMode, SlotsSumSeparatelyAndAreReusedEachPhase) {
    Bench bench(in_mode(GetParam()));
    for (std::uint32_t offset = 0; offset < 12; offset += 2) {
        const auto value = static_cast<std::int32_t>(offset);
        EXPECT_EQ(bench.send(0, offset, {value, 0, 0}).verdict.event, Event::gathered);
        EXPECT_EQ(bench.send(0, offset + 1, {0, value, 0}).verdict.event, Event::gathered);
        EXPECT_EQ(bench.send(1, offset + 1, {0, 1, 0}).lanes, (Lanes{0, value + 1, 0}));
        EXPECT_EQ(bench.send(1, offset, {1, 0, 0}).lanes, (Lanes{value + 1, 0, 0}));
    }
}

class WithRecovery : public EveryMode {};
INSTANTIATE_TEST_SUITE_P(SwitchMl, WithRecovery, ::testing::Values(Mode::faithful, Mode::compares_offsets), name_of);

TEST_P(WithRecovery, RepeatedPacketOfAnIncompleteSlotIsAbsorbed) {
    Bench bench(in_mode(GetParam()));
    EXPECT_EQ(bench.event(0, 0), Event::gathered);
    EXPECT_EQ(bench.event(0, 0), Event::duplicate);
    EXPECT_EQ(bench.send(1, 0, {1, 1, 1}).lanes, (Lanes{2, 3, 4}));
}

TEST_P(WithRecovery, RepeatedPacketOfACompleteSlotIsAnsweredToItsWorkerAlone) {
    Bench bench(in_mode(GetParam()));
    EXPECT_EQ(bench.event(0, 0), Event::gathered);
    EXPECT_EQ(bench.event(1, 0), Event::completed);
    const Outcome answer = bench.send(0, 0, {1, 2, 3});
    EXPECT_EQ(answer.verdict.event, Event::answered);
    EXPECT_EQ(answer.verdict.route, Route::worker);
    EXPECT_EQ(answer.verdict.worker, 0);
    EXPECT_EQ(answer.lanes, (Lanes{2, 4, 6}));
    EXPECT_TRUE(answer.header.result());
}

TEST_P(WithRecovery, ShadowCopyAnswersWhileTheOtherCopySums) {
    Bench bench(in_mode(GetParam()));
    EXPECT_EQ(bench.event(0, 0), Event::gathered);
    EXPECT_EQ(bench.event(1, 0), Event::completed);
    EXPECT_EQ(bench.event(0, 2), Event::gathered) << "worker 0 has the result and uses the slot again";
    EXPECT_EQ(bench.send(1, 0, {1, 2, 3}).lanes, (Lanes{2, 4, 6})) << "worker 1 has lost it";
    EXPECT_EQ(bench.event(1, 2), Event::completed);
}

TEST(SwitchMlSwitch, PacketOnePhaseLateIsAddedUnlessOffsetsAreCompared) {
    for (const auto& [mode, late] :
         {std::pair{Mode::faithful, Event::gathered}, {Mode::compares_offsets, Event::answered}}) {
        Bench bench(in_mode(mode));
        for (const std::uint32_t offset : {0U, 2U}) {
            EXPECT_EQ(bench.event(0, offset), Event::gathered);
            EXPECT_EQ(bench.event(1, offset), Event::completed);
        }
        EXPECT_EQ(bench.event(0, 0), late);
    }
}

TEST(SwitchMlSwitch, PacketTwoPhasesLateIsDroppedIfOffsetsAreCompared) {
    Bench bench;
    for (const std::uint32_t offset : {0U, 2U}) {
        EXPECT_EQ(bench.event(0, offset), Event::gathered);
        EXPECT_EQ(bench.event(1, offset), Event::completed);
    }
    EXPECT_EQ(bench.event(0, 4), Event::gathered);
    EXPECT_EQ(bench.event(1, 0), Event::late);
    EXPECT_EQ(bench.send(1, 4, {0, 0, 0}).lanes, (Lanes{1, 2, 3}));
}

TEST(SwitchMlSwitch, EventsHaveNames) {
    EXPECT_EQ(to_string(Event::gathered), "gathered");
    EXPECT_EQ(to_string(Event::answered), "answered");
    EXPECT_EQ(to_string(Event::refused), "refused");
}

TEST(SwitchMlSwitch, WithoutRecoveryARepeatedPacketIsAddedTwice) {
    Bench bench(in_mode(Mode::lossless));
    EXPECT_EQ(bench.event(0, 0), Event::gathered);
    EXPECT_EQ(bench.event(0, 0), Event::completed);
}

TEST(SwitchMlSwitch, FragmentAheadOfItsSlotIsDropped) {
    Bench bench;
    EXPECT_EQ(bench.event(0, 4), Event::ahead) << "offset 0 was never gathered";
    EXPECT_EQ(bench.event(0, 0), Event::gathered);
    EXPECT_EQ(bench.event(1, 4), Event::ahead) << "offset 0 is not complete";
    EXPECT_EQ(bench.event(1, 0), Event::completed);
}

TEST(SwitchMlSwitch, OffsetsWrapAround) {
    JobConfig job = pair;
    job.first_offset = 0xfffffffcU;
    Bench bench(job);
    for (std::uint32_t i = 0; i < 12; ++i) {
        const std::uint32_t offset = job.first_offset + i;
        EXPECT_EQ(bench.event(0, offset), Event::gathered) << offset;
        EXPECT_EQ(bench.event(1, offset), Event::completed) << offset;
        EXPECT_EQ(bench.event(1, offset - 4), Event::late) << offset;
    }
}

TEST(SwitchMlSwitch, SumsSaturateAndTheResultIsMarked) {
    constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();
    constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
    Bench bench;
    EXPECT_EQ(bench.send(0, 0, {highest, lowest, 5}).verdict.event, Event::gathered);
    const Outcome result = bench.send(1, 0, {1, -1, 5});
    EXPECT_EQ(result.lanes, (Lanes{highest, lowest, 10}));
    EXPECT_TRUE(result.header.overflowed());
    EXPECT_TRUE(bench.send(0, 0, {highest, lowest, 5}).header.overflowed()) << "so does an answer";
    EXPECT_EQ(bench.event(0, 4), Event::ahead);
    EXPECT_EQ(bench.event(0, 2), Event::gathered);
    EXPECT_FALSE(bench.send(1, 2, {1, 1, 1}).header.overflowed()) << "the next fragment has not inherited it";
    EXPECT_EQ(bench.machine.counters().overflows, 1U);
}

TEST(SwitchMlSwitch, OverflowOfAWorkerMarksTheResult) {
    Bench bench;
    Header header = header_of(pair, 0, 0);
    header.flags |= flag_overflow;
    EXPECT_EQ(bench.send(header, {0, 0, 0}).verdict.event, Event::gathered);
    EXPECT_TRUE(bench.send(1, 0, {1, 1, 1}).header.overflowed());
}

TEST(SwitchMlSwitch, HalvesAreSummedAsIntegersAndLeaveAsHalves) {
    JobConfig job = pair;
    job.halves = true;
    Switch machine({.slots = 2, .lanes = 3});
    ASSERT_TRUE(machine.admit(job));
    const auto send = [&](std::uint8_t worker, std::array<std::uint16_t, 3> halves) {
        Bytes bytes(job.packet_bytes());
        Header header = header_of(job, worker, 0);
        header.flags |= flag_halves;
        encode_header(header, bytes);
        for (std::size_t i = 0; i < 3; ++i) wire::store_u16(bytes.data() + header_bytes + 2 * i, halves[i]);
        machine.handle_packet(bytes);
        return bytes;
    };
    send(0, {0x3C00, 0xC000, 0x0001});                  // 1, -2, the smallest positive number
    const Bytes result = send(1, {0x3800, 0x3C00, 0});  // 0.5, 1, 0
    const std::byte* lanes = result.data() + header_bytes;
    EXPECT_EQ(wire::load_u16(lanes), 0x3E00) << "1.5";
    EXPECT_EQ(wire::load_u16(lanes + 2), 0xBC00) << "-1";
    EXPECT_EQ(wire::load_u16(lanes + 4), 0) << "2^-24 is less than half of an integer's worth";
}

TEST(SwitchMlSwitch, PacketThatItsJobNeverSendsIsDroppedAndCounted) {
    Bench bench;
    const Lanes lanes{1, 2, 3};
    Header header = header_of(pair, 0, 0);
    EXPECT_EQ(bench.send(header, {1, 2}).verdict.event, Event::misfit) << "too few lanes";
    EXPECT_EQ(bench.send(header, {1, 2, 3, 4}).verdict.event, Event::misfit) << "too many lanes";
    const auto misfit = [&](auto change) {
        Header changed = header;
        change(changed);
        return bench.send(changed, lanes).verdict.event == Event::misfit;
    };
    EXPECT_TRUE(misfit([](Header& h) { h.worker = 2; }));
    EXPECT_TRUE(misfit([](Header& h) { h.slot = 2; })) << "a slot of another job, or of none";
    EXPECT_TRUE(misfit([](Header& h) { h.slot = 1; })) << "not the slot of its offset";
    EXPECT_TRUE(misfit([](Header& h) { h.flags = flag_version; })) << "not the copy of its offset";
    EXPECT_TRUE(misfit([](Header& h) { h.flags = flag_result; }));
    header.job = 6;
    EXPECT_EQ(bench.send(header, lanes).verdict.event, Event::forged);
    EXPECT_EQ(bench.send(header, {}).verdict.event, Event::refused);
    EXPECT_EQ(bench.machine.counters().count(Event::misfit), 7U);
    EXPECT_EQ(bench.machine.job_counters(5)->count(Event::misfit), 7U);
    EXPECT_EQ(bench.event(0, 0), Event::gathered) << "nothing of it was added";
}

TEST(SwitchMlPool, JobsHaveSeparateSlots) {
    Switch machine({.slots = 8, .lanes = 3});
    const auto job = [](std::uint8_t number, std::uint8_t slots_log2) {
        JobConfig made = pair;
        made.job = number;
        made.slots_log2 = slots_log2;
        return made;
    };
    EXPECT_TRUE(machine.admit(job(1, 1)));
    EXPECT_TRUE(machine.admit(job(2, 2)));
    EXPECT_EQ(machine.free_slots(), 2U);
    EXPECT_FALSE(machine.admit(job(3, 2))) << "no room";
    EXPECT_TRUE(machine.admit(job(1, 1))) << "here already, and the same";
    EXPECT_FALSE(machine.admit(job(1, 0))) << "here already, and another";
    machine.dismiss(1);
    EXPECT_EQ(machine.free_slots(), 4U);
    EXPECT_FALSE(machine.admit(job(3, 2))) << "room, but in two pieces";
    EXPECT_TRUE(machine.admit(job(3, 1)));
    EXPECT_EQ(machine.job_counters(1), nullptr);
}

TEST(SwitchMlPool, JobsNeverMixAndAReusedSlotIsEmpty) {
    Switch machine({.slots = 2, .lanes = 3});
    const auto send = [&](std::uint8_t job, std::uint8_t worker, const Lanes& lanes) {
        JobConfig config = pair;
        config.job = job;
        Bytes bytes = packet_of(header_of(config, worker, 0), lanes);
        const Verdict verdict = machine.handle_packet(bytes);
        return std::pair{verdict.event, static_cast<std::int32_t>(wire::load_u32(bytes.data() + header_bytes))};
    };
    JobConfig one = pair;
    one.slots_log2 = 0;
    JobConfig other = one;
    other.job = 6;
    ASSERT_TRUE(machine.admit(one));
    ASSERT_TRUE(machine.admit(other));
    EXPECT_EQ(send(5, 0, {1, 1, 1}).first, Event::gathered);
    EXPECT_EQ(send(6, 1, {100, 1, 1}).first, Event::gathered);
    EXPECT_EQ(send(5, 1, {2, 1, 1}), std::pair(Event::completed, 3));
    machine.dismiss(5);
    other.job = 7;
    ASSERT_TRUE(machine.admit(other));
    EXPECT_EQ(send(7, 0, {7, 1, 1}).first, Event::gathered);
    EXPECT_EQ(send(7, 1, {7, 1, 1}), std::pair(Event::completed, 14));
}

TEST(SwitchMlPool, JobBeyondTheSlotsOrLanesIsRefused) {
    Switch machine({.slots = 8, .lanes = 3});
    JobConfig job = pair;
    job.lanes = 4;
    EXPECT_FALSE(machine.admit(job)) << "longer than a copy";
    job = pair;
    job.workers = 0;
    EXPECT_FALSE(machine.admit(job));
    job.workers = 65;
    EXPECT_FALSE(machine.admit(job));
    job = pair;
    job.slots_log2 = 17;
    EXPECT_FALSE(machine.admit(job));
}

TEST(SwitchMlSwitch, RestartLeavesNoFragmentSummedWrongly) {
    Bench bench;
    EXPECT_EQ(bench.event(0, 0), Event::gathered);
    EXPECT_EQ(bench.event(1, 0), Event::completed);
    bench.machine.clear();
    EXPECT_EQ(bench.event(0, 2), Event::ahead) << "of worker 0, which had the result";
    EXPECT_EQ(bench.event(1, 0), Event::gathered) << "of worker 1, which had not: a deadline ends it";
}

}  // namespace
}  // namespace atp::switchml
