// SPDX-License-Identifier: Apache-2.0
// Hazards of docs/spec/hazards.md that lost, late and repeated packets cause.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "control/timing.h"
#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// 100 fragments of 61 elements, sequence numbers 0 .. 99.
constexpr std::uint32_t fragments = 100;

Scenario hundred_fragments(std::string_view shape) {
    Scenario s;
    s.topology = topology(shape);
    s.bytes = std::uint64_t{fragments} * 61 * sizeof(float);
    s.linear = true;                   // no two slots share an aggregator, so only losses delay a fragment
    s.min_timeout = milliseconds(20);  // so long that any use of a timer shows in the time
    return s;
}

bool first_sending(const atp_header& header) {
    return header.type == ATP_TYPE_GRADIENT && (header.flags & ATP_FLAG_RESEND) == 0;
}

TEST(Hazard, H05_LostLastFragmentsAreRecoveredByATimer) {
    Scenario s = hundred_fragments("racks:2x2");
    s.faults.interfere = [](const Passage& p) {
        return Disposition{.lose = p.from == "h1" && first_sending(p.header) && p.header.seq + 3 >= fragments};
    };
    const Report report = run_verified(s);
    EXPECT_GE(workers_of(report).probes, 3U);
    EXPECT_GE(finished_ms(report), 20.0);
    EXPECT_LT(finished_ms(report), 100.0);         // one expiry, or two
    EXPECT_LE(workers_of(report).resent, 4 * 3U);  // each worker once, for the partial sums below the server
}

TEST(Hazard, H05_LastResultLostToOneWorkerIsRecoveredByATimer) {
    Scenario s = hundred_fragments("racks:2x2");
    std::set<std::uint32_t> lost;
    s.faults.interfere = [&lost](const Passage& p) {
        const bool last = p.to == "h3" && p.header.type == ATP_TYPE_ACK && p.header.seq + 3 >= fragments;
        return Disposition{.lose = last && lost.insert(p.header.seq).second};
    };
    const Report report = run_verified(s);
    EXPECT_EQ(servers_of(report).reacks, 3U);
    EXPECT_EQ(workers_of(report).resent, 0U);
    EXPECT_LT(finished_ms(report), 100.0);
}

Report run_with_straggler(std::uint64_t bytes, double factor) {
    Scenario s;
    s.topology = topology("racks:2x4");
    s.bytes = bytes;
    s.linear = true;  // no two slots share an aggregator, which the straggler would keep occupied
    s.rate_bits_per_s = 1'000'000'000;
    s.straggler = 5;
    s.straggler_factor = factor;
    return run_verified(s);
}

void expect_no_flush_and_no_resend(const Report& report) {
    EXPECT_EQ(servers_of(report).flushes, 0U);
    EXPECT_EQ(switch_events(report, ATP_EVENT_FETCHED), 0U);
    EXPECT_EQ(workers_of(report).resent, 0U);
    EXPECT_DOUBLE_EQ(report.jobs[0].share_aggregated(), 1.0);
}

TEST(Hazard, H06_WorkerHundredTimesSlowerCausesNoFlushAndNoResend) {
    const Report report = run_with_straggler(50'000, 100);
    expect_no_flush_and_no_resend(report);
    EXPECT_GT(finished_ms(report), 50.0);  // the run took as long as the straggler
}

TEST(Hazard, H06_WorkersThatProbeForASlowerOneGetWaits) {
    const Report report = run_with_straggler(20'000, 1000);
    EXPECT_GT(workers_of(report).waits, 0U);
    expect_no_flush_and_no_resend(report);
}

TEST(Hazard, H08_ResultLostOnTheLastLinkIsRepeatedWithoutATimer) {
    Scenario s = hundred_fragments("racks:2x2");
    bool lost = false;
    s.faults.interfere = [&lost](const Passage& p) {
        const bool hit = p.to == "h0" && p.header.type == ATP_TYPE_ACK && p.header.seq == 40;
        return Disposition{.lose = hit && !std::exchange(lost, true)};
    };
    const Report report = run_verified(s);
    EXPECT_TRUE(lost);
    EXPECT_EQ(workers_of(report).resent, 0U);
    EXPECT_EQ(servers_of(report).reacks, 1U);
    EXPECT_EQ(workers_of(report).probes, 1U);  // newer ACKs showed the loss, without a timer
    EXPECT_LT(finished_ms(report), 20.0);
}

TEST(Hazard, H09_AckLostBeforeASwitchBlocksNoSlot) {
    Scenario s = hundred_fragments("racks:2x2");
    s.window_log2 = 3;
    s.min_timeout = milliseconds(1);
    std::set<std::uint32_t> lost;
    s.faults.interfere = [&lost](const Passage& p) {
        const bool hit = p.from == "s2" && p.to == "s0" && p.header.type == ATP_TYPE_ACK && p.header.seq % 8 == 2;
        return Disposition{.lose = hit && lost.insert(p.header.seq).second};
    };
    const Report report = run_verified(s);
    EXPECT_GE(lost.size(), 12U);
    EXPECT_EQ(servers_of(report).completed, fragments);
    for (const SwitchReport& at : report.switches) EXPECT_EQ(at.occupied, 0U) << at.name;
}

TEST(Hazard, H14_CollisionAtOneRackCausesNoResendOfTheOther) {
    // Job 1's only fragment occupies the only aggregator of rack 0, because its ACK does not reach rack 0 while job 2
    // sums. Job 2 therefore collides at rack 0 and completes at rack 1.
    Scenario s;
    s.topology = topology("racks:2x2");
    s.placement = Placement::separate;
    s.jobs = 2;
    s.bytes = 4 * 61;
    s.aggregators = 1;
    s.stagger = milliseconds(1);
    s.min_timeout = milliseconds(20);
    std::map<std::string, unsigned> resent;
    s.faults.interfere = [&resent](const Passage& p) {
        if (p.header.type == ATP_TYPE_GRADIENT && (p.header.flags & ATP_FLAG_RESEND) != 0 && p.from.front() == 'h') {
            ++resent[std::string(p.from)];
        }
        const bool first_job_ack = p.header.type == ATP_TYPE_ACK && p.header.job == 1;
        return Disposition{.lose = first_job_ack && p.to == "s0" && p.now < Time(milliseconds(10))};
    };
    const Report report = run_verified(s);
    EXPECT_EQ(report.switches[0].counters.events[ATP_EVENT_COLLIDED], 2U);
    EXPECT_EQ(report.jobs[1].worker.resent, 0U);
    EXPECT_EQ(resent["h1.2"] + resent["h1.3"], 0U);
    EXPECT_LT(milliseconds_of(report.jobs[1]), 1.0);  // without a timer
}

TEST(Hazard, H20_DuplicatedAndReorderedPacketsCountOnce) {
    for (const char* shape : {"star:5", "racks:3x3", "fig9"}) {
        Scenario s;
        s.topology = topology(shape);
        s.jobs = 2;
        s.bytes = 50'000;
        s.aggregators = 40;
        s.window_log2 = 4;
        s.faults.duplicate = 1;
        s.faults.reorder = 0.5;
        run_verified(s);
    }
}

TEST(Hazard, H30_AgeingThatFreesLivePartialSumsDelaysSumsOnly) {
    Scenario s;
    s.topology = topology("racks:2x3");
    s.jobs = 2;
    s.bytes = 30'000;
    s.aggregators = 8;
    s.ageing = microseconds(1);
    s.straggler = 1;
    s.straggler_factor = 20;
    const Report report = run_verified(s);
    EXPECT_GT(switch_events(report, ATP_EVENT_TAKEN_OVER), 0U);
}

TEST(Hazard, H33_SprayingCausesAtMostThreeResendsForEachTwoPackets) {
    Scenario s;
    s.topology = topology("racks:4x4");
    s.bytes = 500'000;
    s.aggregators = 1U << 16U;
    s.paths = 4;
    s.path_skew = microseconds(2);
    const WorkerCounters workers = workers_of(run_verified(s));
    // Newer ACKs report each fragment as lost at most once.
    EXPECT_LE(workers.resent_newer, workers.sent);
    EXPECT_LE(workers.resent, workers.sent + workers.sent / 2);
}

TEST(Hazard, H36_SwitchThatRestartsEmptyDelaysSumsOnly) {
    for (unsigned index = 0; index < 3; ++index) {
        Scenario s;
        s.topology = topology("racks:2x4");
        // The sums of a server on the switch are lost with it (H26).
        if (index == 2) s.server = ServerPlacement::dedicated;
        s.bytes = 500'000;
        s.faults.outages = {{.kind = Outage::Kind::crash,
                             .node = Outage::Node::fabric_switch,
                             .job = 0,
                             .index = index,
                             .at = Time(microseconds(20)),
                             .lasts = milliseconds(2)}};
        const Report report = run_verified(s);
        EXPECT_EQ(report.jobs[0].incarnations, 1U);
        EXPECT_GT(workers_of(report).resent, 0U);
        // The next JOIN of a member tells the switch of the job.
        const Duration refresh = control::refresh_of(control::timing.hold);
        EXPECT_LT(finished_ms(report), to_milliseconds(refresh) + 50);
    }
}

// A window of losses is recovered a few fragments per timeout. If timers measured each other's waiting time as round
// trips, they would stay at their limit of 200 ms, and these runs would take seconds.
TEST(Hazard, H92_ConcurrentTimersRecoverWithin500MsAfterHealing) {
    for (const char* const shape : {"star:4", "star:8", "racks:2x3"}) {
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            Scenario s;
            s.seed = seed;
            s.topology = topology(shape);
            s.server = ServerPlacement::dedicated;
            s.bytes = 100'000;
            s.faults.loss = 0.5;
            s.faults.duplicate = 0.1;
            s.faults.reorder = 0.3;
            s.faults.reorder_delay = milliseconds(3);
            s.faults.from = Time(microseconds(20));
            s.faults.until = Time(milliseconds(5));
            EXPECT_LT(run_verified(s).jobs[0].finished.value_or(never), s.faults.until + milliseconds(500))
                << shape << " seed " << seed;
        }
    }
}

}  // namespace
}  // namespace atp::sim
