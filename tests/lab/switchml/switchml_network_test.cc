// SPDX-License-Identifier: Apache-2.0
// SwitchML's machines connected to each other: faults of the network, and H37, docs/spec/hazards.md#h37.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "support/random.h"
#include "support/switchml_network.h"

namespace atp::testing {
namespace {

using switchml::Event;
using switchml::JobConfig;
using switchml::Mode;

JobConfig job_of(std::uint8_t workers, std::uint8_t slots_log2, Mode mode = Mode::compares_offsets) {
    return {.job = 3, .workers = workers, .slots_log2 = slots_log2, .lanes = 4, .mode = mode};
}

std::uint64_t events(SwitchMlNetwork& network, Event event) { return network.machine().counters().count(event); }

// --- a network without faults

TEST(SwitchMl, TensorsOfAnyLengthSumExactlyInAllModes) {
    for (const Mode mode : {Mode::lossless, Mode::faithful, Mode::compares_offsets}) {
        for (const auto slots_log2 : std::array<std::uint8_t, 3>{0, 1, 3}) {
            SwitchMlNetwork network(job_of(3, slots_log2, mode));
            for (const std::size_t elements : {1U, 4U, 5U, 100U, 3U}) network.submit(elements);
            network.settle();
            EXPECT_TRUE(network.done());
            EXPECT_TRUE(network.sums_are_right());
            EXPECT_EQ(network.events(2).size(), 5U);
        }
    }
}

TEST(SwitchMl, WorkerHasOnePacketPerSlotInFlight) {
    SwitchMlNetwork network(job_of(2, 2));
    network.submit(400);
    EXPECT_EQ(network.flights().size(), 8U);
    network.settle();
    EXPECT_EQ(network.worker(0).counters().sent, 100U);
    EXPECT_EQ(network.worker(0).counters().resent, 0U);
    EXPECT_EQ(events(network, Event::completed), 100U);
}

TEST(SwitchMl, SingleWorkerReceivesItsOwnValues) {
    SwitchMlNetwork network(job_of(1, 1));
    network.submit(50);
    network.settle();
    EXPECT_TRUE(network.sums_are_right());
}

TEST(SwitchMl, TensorsSubmittedDuringOthersFinishInOrder) {
    SwitchMlNetwork network(job_of(2, 1));
    network.submit(30);
    for (unsigned i = 0; i < 9; ++i) network.deliver(0);
    network.submit(2);
    network.settle();
    network.submit(17);
    network.settle();
    EXPECT_TRUE(network.sums_are_right());
    ASSERT_EQ(network.events(0).size(), 3U);
    for (std::uint64_t number = 0; number < 3; ++number) EXPECT_EQ(network.events(0)[number].tensor, number);
}

// --- losses

TEST(SwitchMl, LostUpdateIsResentAfterTheTimeout) {
    SwitchMlNetwork network(job_of(2, 0));
    network.submit(4);
    network.lose(network.find(true, 1));
    network.settle();
    EXPECT_FALSE(network.done());
    network.pass_timeout();
    network.settle();
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(events(network, Event::duplicate), 1U) << "worker 0 asked as well";
}

TEST(SwitchMl, LostResultIsAnsweredToItsWorkerAlone) {
    SwitchMlNetwork network(job_of(2, 0));
    network.submit(4);
    network.deliver(true, 0);
    network.deliver(true, 1);
    network.lose(network.find(false, 0));
    network.settle();
    network.pass_timeout();
    network.settle();
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(events(network, Event::answered), 1U);
    EXPECT_EQ(network.worker(1).counters().resent, 0U);
}

// The example of the paper's appendix A, event by event.
TEST(SwitchMl, ExampleOfAppendixAEndsInExactSums) {
    SwitchMlNetwork network(job_of(3, 0));
    network.submit(8);
    network.deliver(true, 0);
    network.deliver(true, 1);
    network.lose(network.find(true, 2));  // t3
    network.pass_timeout();               // t4, t5, t6
    for (const unsigned worker : {0U, 1U, 2U}) network.deliver(true, worker);
    EXPECT_EQ(events(network, Event::duplicate), 2U);
    network.lose(network.find(false, 0));  // t7
    const auto late = network.find(false, 1);
    network.deliver(late);      // t9
    network.deliver(false, 2);  // t10
    network.deliver(true, 1);   // t12
    network.deliver(true, 2);   // t13
    network.pass_timeout();     // t8
    network.deliver(true, 0);
    EXPECT_EQ(events(network, Event::answered), 1U);
    network.deliver(false, 0);               // t11
    network.deliver(network.find(true, 0));  // t14, t15
    network.settle();
    EXPECT_TRUE(network.done());
    EXPECT_TRUE(network.sums_are_right());
}

RC_GTEST_PROP(SwitchMl, SumsAreExactUnderLossDuplicationAndReordering, (std::uint32_t seed)) {
    const auto workers = static_cast<std::uint8_t>(*rc::gen::inRange(1, 6));
    const auto slots_log2 = static_cast<std::uint8_t>(*rc::gen::inRange(0, 4));
    const auto elements = static_cast<std::size_t>(*rc::gen::inRange(1, 120));
    JobConfig job = job_of(workers, slots_log2);
    job.first_offset = *rc::gen::element(0U, 7U, 0xfffffff5U);
    SwitchMlNetwork network(job);
    network.submit(elements);
    network.submit(1 + elements / 3);
    Random random(seed);
    network.run(SwitchMlNetwork::Chaos{.loss = 20, .duplicate = 60},
                [&](unsigned below) { return random.below(below); });
    network.run();  // no faults from here on
    RC_ASSERT(network.done());
    RC_ASSERT(network.sums_are_right());
    RC_ASSERT(network.machine().counters().overflows == 0U);
}

RC_GTEST_PROP(SwitchMl, WithoutRecoverySumsAreExactInAnyOrder, (std::uint32_t seed)) {
    SwitchMlNetwork network(job_of(4, 2, Mode::lossless));
    network.submit(90);
    Random random(seed);
    network.run(SwitchMlNetwork::Chaos{}, [&](unsigned below) { return random.below(below); });
    RC_ASSERT(network.done());
    RC_ASSERT(network.sums_are_right());
}

// --- hazard 37

// The network duplicates worker 0's first update, and the copy arrives one phase late. By then the worker has used the
// other copy of the slot, and so cleared its bit in this one.
void run_with_an_update_a_phase_late(SwitchMlNetwork& network) {
    network.submit(3 * 4);
    const SwitchMlFlight copy = network.flights()[network.find(true, 0)];
    for (const unsigned worker : {0U, 1U}) network.deliver(true, worker);
    for (const unsigned worker : {0U, 1U}) network.deliver(false, worker);
    network.deliver(true, 0);
    network.put(copy);
    network.deliver(network.flights().size() - 1);
    network.run();
}

TEST(Hazard, H37_DuplicateOnePhaseLateBreaksTheFaithfulModeOnly) {
    SwitchMlNetwork faithful(job_of(2, 0, Mode::faithful));
    run_with_an_update_a_phase_late(faithful);
    EXPECT_TRUE(faithful.done()) << "no node detects it";
    EXPECT_FALSE(faithful.sums_are_right());
    EXPECT_EQ(faithful.sum(0, 0, 4), faithful.expected(0, 4)) << "phase 1 is right";
    EXPECT_NE(faithful.sum(0, 0, 8), faithful.expected(0, 8)) << "phase 2 has the number of phase 0 in it";

    SwitchMlNetwork ours(job_of(2, 0));
    run_with_an_update_a_phase_late(ours);
    EXPECT_TRUE(ours.done());
    EXPECT_TRUE(ours.sums_are_right());
    EXPECT_EQ(ours.machine().counters().count(Event::answered), 1U) << "its worker has that result, and drops it";
}

// A spurious timeout also creates a late copy, without a duplicate from the network.
TEST(Hazard, H37_OvertakenSpuriousResendBreaksTheFaithfulModeOnly) {
    for (const Mode mode : {Mode::faithful, Mode::compares_offsets}) {
        SwitchMlNetwork network(job_of(2, 0, mode));
        network.submit(3 * 4);
        network.pass_timeout();
        const SwitchMlFlight delayed = network.flights()[2];
        ASSERT_EQ(delayed.worker, 0U);
        network.lose(2);
        network.lose(2);
        for (const unsigned worker : {0U, 1U}) network.deliver(true, worker);
        for (const unsigned worker : {0U, 1U}) network.deliver(false, worker);
        network.deliver(true, 0);
        network.put(delayed);
        network.deliver(network.flights().size() - 1);
        network.run();
        EXPECT_EQ(network.sums_are_right(), mode == Mode::compares_offsets);
    }
}

TEST(Hazard, H37_RandomNetworksBreakTheFaithfulModeOnly) {
    const auto count_wrong = [](Mode mode) {
        unsigned wrong = 0;
        for (std::uint32_t seed = 0; seed < 50; ++seed) {
            SwitchMlNetwork network(job_of(3, 1, mode));
            network.submit(100);
            Random random(seed);
            network.run(SwitchMlNetwork::Chaos{.loss = 10, .duplicate = 40},
                        [&](unsigned below) { return random.below(below); });
            network.run();
            if (!network.done() || !network.sums_are_right()) ++wrong;
        }
        return wrong;
    };
    EXPECT_GT(count_wrong(Mode::faithful), 0U);
    EXPECT_EQ(count_wrong(Mode::compares_offsets), 0U);
}

}  // namespace
}  // namespace atp::testing
