// SPDX-License-Identifier: Apache-2.0
#include "doctor/path_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace atp::doctor {
namespace {

using testing::HasSubstr;

constexpr const char* software = "atp 1.2.3";

PathFacts good_path() {
    PathFacts facts;
    facts.address = wire::Address::loopback(wire::Family::ipv4, 4790);
    facts.welcome.software = software;
    facts.welcome.path = {{.id = 1, .aggregators = 40'000, .lanes = 352}};
    facts.round_trips.assign(20, std::chrono::microseconds(30));
    facts.report.emplace().shards.resize(1);
    facts.report->shards[0].udp.received_packets = 1'000'000;
    facts.interface_payload_bytes = facts.found_payload_bytes = 1472;
    facts.reads_marks = true;
    facts.short_packets = TrainReport{.bytes = 64, .sent = 1000, .answered = 1000, .marks = {0, 0, 1000, 0}};
    facts.long_packets = TrainReport{.bytes = 1472, .sent = 200, .answered = 200, .marks = {0, 0, 200, 0}};
    return facts;
}

PathFacts silent_path(Reason reason, std::string text = {}) {
    PathFacts facts;
    facts.address = wire::Address::loopback(wire::Family::ipv4, 4790);
    facts.silence = Error{.reason = reason, .text = std::move(text)};
    return facts;
}

Finding only(const std::vector<Finding>& findings, Status status) {
    const auto found = std::ranges::find(findings, status, &Finding::status);
    return found == findings.end() ? Finding{} : *found;
}

TEST(PathChecks, GoodPathHasNoFindings) {
    const auto findings = check_path(good_path(), software);
    EXPECT_EQ(findings.size(), 13U);
    for (const Finding& finding : findings) {
        EXPECT_EQ(finding.status, Status::ok) << finding.name << ": " << finding.found;
        EXPECT_EQ(finding.fix, "") << finding.name;
        EXPECT_THAT(finding.name, HasSubstr("127.0.0.1:4790"));
    }
}

TEST(PathChecks, SilentSwitchFailsOneCheckAlone) {
    const auto findings = check_path(silent_path(Reason::timed_out), software);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].status, Status::fail);
    EXPECT_THAT(findings[0].fix, HasSubstr("UDP port 4790"));
}

TEST(PathChecks, ClosedPortAndMissingRouteHaveDifferentRemedies) {
    EXPECT_THAT(check_reachability(silent_path(Reason::refused)).fix, HasSubstr("no process listens"));
    EXPECT_THAT(check_reachability(silent_path(Reason::unreachable)).fix, HasSubstr("route"));
}

TEST(PathChecks, OtherProtocolVersionFailsTheVersionAndPassesReachability) {
    const auto findings = check_path(silent_path(Reason::version_mismatch, "it speaks version 2"), software);
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].status, Status::ok);
    EXPECT_EQ(findings[1].status, Status::fail);
    EXPECT_THAT(findings[1].found, HasSubstr("it speaks version 2"));
}

TEST(PathChecks, OtherSoftwareOfTheSameProtocolWarns) {
    EXPECT_EQ(check_version(good_path(), "atp 1.2.4").status, Status::warn);
}

TEST(PathChecks, SilentParentFailsWithItsAddress) {
    PathFacts facts = silent_path(Reason::rejected, "its parent does not answer it");
    facts.report = client::SwitchReport{.parent = "10.0.0.1:4790"};
    const auto findings = check_path(facts, software);
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].status, Status::ok);
    EXPECT_EQ(findings[1].status, Status::fail);
    EXPECT_THAT(findings[1].fix, HasSubstr("10.0.0.1:4790"));
}

TEST(PathChecks, TreeIsDescribedWithItsParent) {
    PathFacts facts = good_path();
    EXPECT_THAT(check_tree(facts).found, HasSubstr("no parent"));
    facts.welcome.path.push_back({.id = 2, .aggregators = 100, .lanes = 352});
    facts.report->parent = "10.0.0.1:4790";
    EXPECT_THAT(check_tree(facts).found, HasSubstr("1 above it, parent 10.0.0.1:4790 answers"));
}

TEST(PathChecks, LongRoundTripWarns) {
    PathFacts facts = good_path();
    facts.round_trips.back() = std::chrono::milliseconds(50);  // one late answer does not show a longer path
    EXPECT_EQ(check_round_trip(facts).status, Status::ok);
    facts.round_trips.assign(20, std::chrono::milliseconds(5));
    EXPECT_EQ(check_round_trip(facts).status, Status::warn);
}

TEST(PathChecks, SwitchWithoutAggregatorsOrFewerThanAWindowWarns) {
    PathFacts facts = good_path();
    facts.welcome.path[0].aggregators = 0;
    EXPECT_THAT(check_aggregators(facts).found, HasSubstr("nothing is aggregated"));
    facts.welcome.path.push_back({.id = 2, .aggregators = 255, .lanes = 352});
    EXPECT_EQ(check_aggregators(facts).status, Status::warn);
    EXPECT_THAT(check_aggregators(facts).fix, HasSubstr("--memory"));
    facts.welcome.path[1].aggregators = 256;
    EXPECT_EQ(check_aggregators(facts).status, Status::ok);
}

TEST(PathChecks, SwitchThatServesSwitchMlAlonePasses) {
    PathFacts facts = good_path();
    facts.welcome.path = {{.id = 1, .aggregators = 0, .lanes = 352, .slots = 512}};
    EXPECT_EQ(check_aggregators(facts).status, Status::ok);
    EXPECT_THAT(check_aggregators(facts).found, HasSubstr("512 slots for SwitchML"));
}

TEST(PathChecks, LongPacketsRequireFewerAggregators) {
    PathFacts facts = good_path();
    facts.interface_payload_bytes = facts.found_payload_bytes = ATP_MAX_PACKET_BYTES;
    facts.welcome.path[0] = {.id = 1, .aggregators = 100, .lanes = 16'360};
    EXPECT_EQ(check_aggregators(facts).status, Status::ok);
}

TEST(PathChecks, PathNarrowerThanTheInterfaceWarns) {
    PathFacts facts = good_path();
    facts.found_payload_bytes = 1372;
    EXPECT_EQ(check_path_mtu(facts).status, Status::warn);
    EXPECT_THAT(check_path_mtu(facts).found, HasSubstr("1400, but the interface has 1500"));
    EXPECT_THAT(check_path_mtu(facts).fix, HasSubstr("mtu 1400"));
}

TEST(PathChecks, PathBelowTheLeastSizeFails) {
    PathFacts facts = good_path();
    facts.found_payload_bytes = 0;
    facts.long_packets.reset();
    EXPECT_EQ(check_path_mtu(facts).status, Status::fail);
    EXPECT_FALSE(passed(check_path(facts, software)));
}

TEST(PathChecks, NarrowReturnPathIsDistinguishedFromANarrowForwardPath) {
    PathFacts facts = good_path();
    facts.found_payload_bytes = 1372;
    facts.long_question_arrives = true;
    EXPECT_EQ(check_symmetry(facts).status, Status::warn);
    EXPECT_THAT(check_symmetry(facts).found, HasSubstr("do not return"));
    facts.long_question_arrives = false;
    EXPECT_EQ(check_symmetry(facts).status, Status::ok);
    EXPECT_THAT(check_symmetry(facts).found, HasSubstr("lost in the direction to the switch"));
}

TEST(PathChecks, AggregatorsShorterOrMuchLongerThanPacketsWarn) {
    PathFacts facts = good_path();
    facts.welcome.path.push_back({.id = 2, .aggregators = 40'000, .lanes = 62});
    EXPECT_EQ(check_lanes(facts).status, Status::warn);
    EXPECT_THAT(check_lanes(facts).found, HasSubstr("the path carries packets of 352 lanes, aggregators hold 62"));
    EXPECT_THAT(check_lanes(facts).fix, HasSubstr("--lanes 352"));
    facts.welcome.path = {{.id = 1, .aggregators = 40'000, .lanes = 2232}};
    EXPECT_THAT(check_lanes(facts).found, HasSubstr("84 % of the memory of the aggregators is unused"));
}

TEST(PathChecks, LanesOfASwitchWithoutAggregatorsAreIgnored) {
    PathFacts facts = good_path();
    facts.welcome.path.push_back({.id = 2, .aggregators = 0, .lanes = 8});
    EXPECT_EQ(check_lanes(facts).status, Status::ok);
}

PathFacts path_through_a_kernel() {
    PathFacts facts = good_path();
    facts.welcome.path.front().aggregators = 0;
    client::ShardReport& kernel = facts.report->shards.emplace_back();
    kernel.aggregators = 44'444;
    kernel.kernel = client::KernelReport{.lanes = 352, .interfaces = {{"eth1", "native"}}};
    return facts;
}

client::KernelReport& kernel_in(PathFacts& facts) { return *facts.report->shards.back().kernel; }
Finding check_kernel(const PathFacts& facts) { return check_kernel(facts, *client::kernel_of(*facts.report)); }

client::JobReport job_with(std::uint64_t claimed, std::uint64_t completed, std::uint64_t fetched) {
    client::JobReport job;
    job.counters.events[ATP_EVENT_CLAIMED] = claimed;
    job.counters.events[ATP_EVENT_COMPLETED] = completed;
    job.counters.events[ATP_EVENT_FETCHED] = fetched;
    return job;
}

TEST(PathChecks, TakeASwitchInsideTheKernelForItsTable) {
    const auto findings = check_path(path_through_a_kernel(), software);
    EXPECT_EQ(only(findings, Status::warn).name, "");
    EXPECT_EQ(only(findings, Status::fail).name, "");
    const auto kernel = std::ranges::find(findings, "inside the kernel 127.0.0.1:4790", &Finding::name);
    ASSERT_NE(kernel, findings.end());
    EXPECT_EQ(kernel->found, "eth1 native, 44444 aggregators of 352 lanes");
}

TEST(PathChecks, PacketsWithMoreLanesThanTheKernelWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).oversized = 17;
    Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("17 packets with more lanes were forwarded unaggregated"));
    EXPECT_EQ(finding.fix, "start the switch that workers address with --lanes 352");

    kernel_in(facts).interfaces.emplace_back("eth2", "generic");
    EXPECT_THAT(check_kernel(facts).fix, HasSubstr("gso_max_segs 1"));

    facts = path_through_a_kernel();
    facts.found_payload_bytes = 8972;
    finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("the path carries packets of 2224 lanes"));
}

TEST(PathChecks, InterfaceWithoutItsProgramWarns) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).interfaces.emplace_back("eth2", "gone");
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("no longer attached to eth2"));
    EXPECT_EQ(finding.fix, "restart that switch");
}

TEST(PathChecks, LongPacketsOfTheLoopbackAreIgnored) {
    PathFacts facts = path_through_a_kernel();
    facts.found_payload_bytes = ATP_MAX_PACKET_BYTES;
    facts.stays_on_this_host = true;
    EXPECT_EQ(check_kernel(facts).status, Status::ok);
    kernel_in(facts).oversized = 1;
    EXPECT_THAT(check_kernel(facts).found, HasSubstr("1 packets with more lanes were forwarded"));
}

TEST(PathChecks, FragmentsFetchedWithoutCompletionWarn) {
    PathFacts facts = path_through_a_kernel();
    facts.report->shards.back().jobs = {job_with(8524, 0, 8524)};
    facts.report->shards.back().packets = job_with(100'000, 99'000, 500).counters;
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("of 8524 fragments claimed there, 0 were completed and 8524 were fetched"));
    EXPECT_THAT(finding.found, HasSubstr("packets of some workers do not pass its interfaces"));
    EXPECT_THAT(finding.fix, HasSubstr("--xdp"));
    EXPECT_THAT(finding.fix, HasSubstr("--rack"));
}

TEST(PathChecks, JobsForwardedUnaggregatedWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).passing_jobs = {3, 4};
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found,
                HasSubstr("2 jobs are forwarded unaggregated: packets of some workers do not pass its interfaces"));
    EXPECT_THAT(finding.fix, HasSubstr("--xdp"));
}

TEST(PathChecks, FewOrCompletedOrUnfetchedFragmentsPass) {
    PathFacts facts = path_through_a_kernel();
    for (const client::JobReport& fine :
         {job_with(999, 0, 999), job_with(10'000, 1'000, 9'000), job_with(10'000, 0, 5'000)}) {
        facts.report->shards.back().jobs = {fine};
        facts.report->shards.back().packets = fine.counters;
        EXPECT_EQ(check_kernel(facts).status, Status::ok) << fine.counters.events[ATP_EVENT_CLAIMED];
    }
}

TEST(PathChecks, JobsRefusedByAFullKernelTableWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).not_admitted = 12;
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("12 JOINs found no free job"));
    EXPECT_THAT(finding.fix, HasSubstr("--jobs"));
}

TEST(PathChecks, DamagedPacketsWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).damaged = 3;
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("3 packets with a wrong checksum were forwarded unaggregated"));
    EXPECT_THAT(finding.fix, HasSubstr("cable"));
}

TEST(PathChecks, LittleLossWarnsAndMuchLossFails) {
    const PathFacts facts = good_path();
    TrainReport train{.sent = 1000, .answered = 999};
    EXPECT_EQ(check_train(facts, "short packets", train).status, Status::warn);
    train.answered = 990;
    EXPECT_EQ(check_train(facts, "short packets", train).status, Status::fail);
    EXPECT_THAT(check_train(facts, "short packets", train).fix, HasSubstr("ethtool"));
}

TEST(PathChecks, ReorderingThatCausesResendsWarns) {
    const PathFacts facts = good_path();
    TrainReport train{.sent = 1000, .answered = 1000, .overtaken = 10, .most_newer = 2};
    EXPECT_EQ(check_train(facts, "short packets", train).status, Status::ok);
    train.most_newer = 3;
    EXPECT_EQ(check_train(facts, "short packets", train).status, Status::warn);
    EXPECT_THAT(check_train(facts, "short packets", train).fix, HasSubstr("one path"));
}

TEST(PathChecks, RepeatedAnswersWarn) {
    const TrainReport train{.sent = 1000, .answered = 1000, .repeated = 1};
    EXPECT_EQ(check_train(good_path(), "short packets", train).status, Status::warn);
}

TEST(PathChecks, MarkedPacketsAndClearedEcnBitsWarn) {
    PathFacts facts = good_path();
    facts.short_packets->marks = {0, 0, 999, 1};
    EXPECT_THAT(check_marks(facts).found, HasSubstr("queue in the path is long"));
    facts.short_packets->marks = {1000, 0, 0, 0};
    EXPECT_THAT(check_marks(facts).found, HasSubstr("clears the ECN bits"));
    EXPECT_EQ(check_marks(facts).status, Status::warn);
    facts.reads_marks = false;
    EXPECT_EQ(check_marks(facts).status, Status::warn);
}

TEST(PathChecks, DropsAtTheSwitchWarn) {
    PathFacts facts = good_path();
    facts.report->shards[0].udp.dropped_packets = 10;  // of one million
    EXPECT_EQ(check_switch_drops(facts).status, Status::ok);
    facts.report->shards[0].udp.dropped_packets = 10'000;
    EXPECT_THAT(check_switch_drops(facts).fix, HasSubstr("rmem_max"));
    facts.report->shards[0].udp.dropped_packets = 0;
    facts.report->shards[0].udp.refused_packets = 1;
    EXPECT_THAT(check_switch_drops(facts).fix, HasSubstr("check the MTU"));
}

TEST(PathChecks, EmulatedLossAtTheSwitchWarns) {
    PathFacts facts = good_path();
    facts.report->parts = {{"emulated_ports", R"({"rate_bps":0,"loss":0.01})"}};
    EXPECT_THAT(only(check_path(facts, software), Status::warn).found, HasSubstr("drops 1 % of"));
}

TEST(PeerCheck, ClosedPortAndSilentHostHaveDifferentRemedies) {
    EXPECT_EQ(check_peer("a:1", Duration(5000)).status, Status::ok);
    const auto refused = fail_with_errno(Operation::connect, ECONNREFUSED, "a:1");
    EXPECT_EQ(check_peer("a:1", refused).status, Status::fail);
    EXPECT_THAT(check_peer("a:1", refused).fix, HasSubstr("start rank 0"));
    const auto silent = fail(Operation::connect, Reason::timed_out, "a:1", "");
    EXPECT_THAT(check_peer("a:1", silent).fix, HasSubstr("firewall"));
}

}  // namespace
}  // namespace atp::doctor
