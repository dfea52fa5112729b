// SPDX-License-Identifier: Apache-2.0
// Lists of ACKs without lanes in simulated networks.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "sim/swarm.h"
#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;

// Half of the tensors are reduce-scatters, and half all-gathers.
Scenario owned_tensors(std::string_view shape) {
    Scenario s;
    s.topology = topology(shape);
    s.tensors = 8;
    s.bytes = 1'000'000;
    s.aggregators = 1U << 16U;
    s.owned_share = 1;
    return s;
}

// Lists by the link that they cross.
struct Seen {
    std::map<std::pair<std::string, std::string>, unsigned> lists;
    unsigned count = 0;

    [[nodiscard]] std::function<Disposition(const Passage&)> observe(
        std::function<Disposition(unsigned)> harm = nullptr) {
        return [this, harm = std::move(harm)](const Passage& p) {
            if (p.header.type != ATP_TYPE_ACK_LIST) return Disposition{};
            ++lists[{std::string(p.from), std::string(p.to)}];
            return harm ? harm(count++) : Disposition{};
        };
    }
};

TEST(AckLists, SwitchOfAStarGathersForEachWorker) {
    Seen seen;
    Scenario s = owned_tensors("star:4");
    s.faults.interfere = seen.observe();
    const Report report = run_verified(s);
    const JobReport& job = report.jobs[0];
    EXPECT_GT(job.gathered_acks, servers_of(report).completed / 2);
    EXPECT_GT(job.gathered_acks, 4 * job.ack_lists);
    EXPECT_EQ(seen.lists.size(), 4U);
    for (const auto& [link, lists] : seen.lists) EXPECT_EQ(link.first, "s0") << "to " << link.second;
}

TEST(AckLists, OnlyTheLastSwitchBeforeAWorkerGathers) {
    for (const char* shape : {"racks:2x3", "dumbbell:2x2", "fig9"}) {
        SCOPED_TRACE(shape);
        Seen seen;
        Scenario s = owned_tensors(shape);
        s.faults.interfere = seen.observe();
        const Report report = run_verified(s);
        EXPECT_GT(report.jobs[0].ack_lists, 0U);
        for (const auto& [link, lists] : seen.lists) EXPECT_EQ(link.second.front(), 'h') << link.first;
        for (const SwitchReport& at : report.switches) EXPECT_EQ(at.occupied, 0U) << at.name;
    }
}

TEST(AckLists, ServerOnAnotherHostLeavesTheSwitchItsBatches) {
    for (const ServerPlacement server : {ServerPlacement::dedicated, ServerPlacement::colocated}) {
        Scenario s = owned_tensors("star:4");
        s.server = server;
        EXPECT_GT(run_verified(s).jobs[0].ack_lists, 0U);
    }
}

TEST(AckLists, NoListsWithoutOwners) {
    Scenario s = owned_tensors("star:4");
    s.owned_share = 0;
    EXPECT_EQ(run_verified(s).jobs[0].ack_lists, 0U);
}

// A list is one packet: fewer of them leave a switch that waits for more ACKs.
TEST(AckLists, HeldAcksLeaveInFewerPackets) {
    const auto lists_and_packets = [](bool ack_lists) {
        Scenario s = owned_tensors("star:4");
        s.ack_lists = ack_lists;
        const Report report = run_verified(s);
        std::uint64_t packets = 0;
        for (const LinkReport& link : report.links) packets += link.to.front() == 'h' ? link.counters.packets : 0;
        return std::pair(report.jobs[0].gathered_acks, packets);
    };
    const auto [gathered, packets] = lists_and_packets(true);
    const auto [gathered_at_once, more_packets] = lists_and_packets(false);
    EXPECT_GT(gathered, gathered_at_once);
    EXPECT_LT(packets, more_packets);
}

TEST(AckLists, H89_ListsThatAreLostRepeatedOrLateDelayOnly) {
    const std::map<std::string, std::function<Disposition(unsigned)>> harms{
        {"lost", [](unsigned number) { return Disposition{.lose = number % 3 == 0}; }},
        {"repeated", [](unsigned /*number*/) { return Disposition{.duplicate = true}; }},
        {"late",
         [](unsigned number) { return Disposition{.delay = number % 2 == 0 ? microseconds(400) : Duration::zero()}; }},
    };
    for (const char* shape : {"star:4", "racks:2x3"}) {
        for (const auto& [name, harm] : harms) {
            SCOPED_TRACE(name);
            Seen seen;
            Scenario s = owned_tensors(shape);
            s.faults.interfere = seen.observe(harm);
            const Report report = run_verified(s);
            EXPECT_GT(seen.count, 20U);
            for (const SwitchReport& at : report.switches) EXPECT_EQ(at.occupied, 0U) << at.name;
        }
    }
}

// ACKs that wait in a list are lost with the switch.
TEST(AckLists, H89_SwitchThatRestartsLosesItsLists) {
    Scenario s = owned_tensors("racks:2x3");
    s.faults.outages = {{.kind = Outage::Kind::crash,
                         .node = Outage::Node::fabric_switch,
                         .job = 0,
                         .index = 0,
                         .at = Time(microseconds(30)),
                         .lasts = microseconds(200)}};
    const Report report = run_verified(s);
    EXPECT_GT(report.jobs[0].ack_lists, 0U);
    EXPECT_GT(workers_of(report).probes + workers_of(report).resent, 0U);
}

TEST(AckLists, SwarmDrawsThemForSomeScenariosWithOwners) {
    unsigned with = 0;
    unsigned without = 0;
    std::uint64_t lists = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const Scenario s = draw_scenario(seed);
        if (s.owned_share == 0) {
            EXPECT_TRUE(s.ack_lists) << seed;
            continue;
        }
        ++(s.ack_lists ? with : without);
        if (!s.ack_lists) continue;
        for (const JobReport& job : run_verified(s).jobs) lists += job.ack_lists;
    }
    EXPECT_GT(with, 5U);
    EXPECT_GT(without, 2U);
    EXPECT_GT(lists, 20U);
}

}  // namespace
}  // namespace atp::sim
