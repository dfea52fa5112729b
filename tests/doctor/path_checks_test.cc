// SPDX-License-Identifier: Apache-2.0
#include "doctor/path_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "good_path.h"

namespace atp::doctor {
namespace {

using testing::HasSubstr;

PathFacts silent_path(Reason reason, std::string text = {}) {
    PathFacts facts;
    facts.address = wire::Address::loopback(wire::Family::ipv4, 4790);
    facts.silence = Error{.reason = reason, .text = std::move(text)};
    return facts;
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

TEST(PathChecks, LeafThatIsFartherThanItsParentWarns) {
    PathFacts facts = good_path();
    facts.welcome.path.push_back({.id = 2, .aggregators = 40'000, .lanes = 352});
    facts.report->parent = "10.0.0.1:4790";
    facts.routers = 2;
    facts.routers_to_parent = 2;
    EXPECT_EQ(check_tree(facts).status, Status::ok);
    facts.routers_to_parent = 1;
    EXPECT_EQ(check_tree(facts).status, Status::warn);
    EXPECT_THAT(check_tree(facts).found, HasSubstr("2 routers lie between this host and this switch, but only 1"));
    EXPECT_THAT(check_tree(facts).fix, HasSubstr("in another rack"));
    facts.routers_to_parent.reset();
    EXPECT_EQ(check_tree(facts).status, Status::ok);
}

TEST(PathChecks, RootThatServesLeavesWarns) {
    PathFacts facts = good_path();
    facts.report->shards[0].channels = {{.job = 7, .level = 0}};
    EXPECT_EQ(check_tree(facts).status, Status::ok);
    facts.report->shards[0].channels.push_back({.job = 8, .level = 1});
    EXPECT_EQ(check_tree(facts).status, Status::warn);
    EXPECT_THAT(check_tree(facts).fix, HasSubstr("name the switch of their rack"));
    facts.welcome.path.push_back({.id = 2, .aggregators = 40'000, .lanes = 352});
    EXPECT_EQ(check_tree(facts).status, Status::ok) << "not the last switch";
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
    facts.welcome.path.push_back({.id = 2, .aggregators = 127, .lanes = 352});
    EXPECT_EQ(check_aggregators(facts).status, Status::warn);
    EXPECT_THAT(check_aggregators(facts).fix, HasSubstr("--memory"));
    facts.welcome.path[1].aggregators = 128;
    EXPECT_EQ(check_aggregators(facts).status, Status::ok);
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
    EXPECT_THAT(check_path_mtu(facts).fix, HasSubstr("`tracepath -n 127.0.0.1`) and raise its MTU to 1500"));
}

// Shorter packets would be a loss for all hosts, and one interface is at fault.
TEST(PathChecks, InterfaceBelowThePacketsOfTheSwitchIsNamedWithItsCommand) {
    PathFacts facts = good_path();
    facts.interface = "eth3";
    facts.interface_payload_bytes = facts.found_payload_bytes = 1272;
    const Finding finding = check_path_mtu(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("1300, equal to the interface"));
    EXPECT_THAT(finding.found, HasSubstr("packets that fill an aggregator need 1492"));
    EXPECT_EQ(finding.fix, "raise the MTU of this host's interface: `ip link set dev eth3 mtu 1500`");
    EXPECT_THAT(check_lanes(facts).fix, HasSubstr("`ip link set dev eth3 mtu 1500`"));
    facts.welcome.path.front().lanes = 304;
    EXPECT_EQ(check_path_mtu(facts).status, Status::ok);
    facts.welcome.path.front().lanes = 16'360;
    EXPECT_EQ(check_path_mtu(facts).status, Status::ok) << "no network carries these";
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

TEST(PathChecks, LittleLossWarnsAndMuchLossFails) {
    const PathFacts facts = good_path();
    TrainReport train{.sent = 1000, .answered = 999};
    EXPECT_EQ(check_train(facts, CheckName::short_packets, train).status, Status::warn);
    train.answered = 990;
    EXPECT_EQ(check_train(facts, CheckName::short_packets, train).status, Status::fail);
    EXPECT_THAT(check_train(facts, CheckName::short_packets, train).fix, HasSubstr("ethtool"));
}

TEST(PathChecks, DirectionThatLosesIsNamed) {
    const PathFacts facts = good_path();
    TrainReport train{.sent = 1000, .answered = 960, .arrived = 962};
    EXPECT_THAT(
        check_train(facts, CheckName::short_packets, train).found,
        HasSubstr("40 of 1000 lost, 0 duplicated, 0 reordered (by at most 0); 38 on the way to the switch, 2 on"));
    EXPECT_THAT(check_train(facts, CheckName::short_packets, train).fix,
                HasSubstr("drops from this host to the switch"));
    train.arrived = 1000;
    EXPECT_THAT(check_train(facts, CheckName::short_packets, train).fix,
                HasSubstr("drops from the switch to this host"));
    train.arrived = 980;
    EXPECT_THAT(check_train(facts, CheckName::short_packets, train).fix, HasSubstr("drops in both directions"));
    train.arrived.reset();
    EXPECT_THAT(check_train(facts, CheckName::short_packets, train).fix, HasSubstr("drops in both directions"));
}

TEST(PathChecks, ReorderingThatCausesResendsWarns) {
    const PathFacts facts = good_path();
    TrainReport train{.sent = 1000, .answered = 1000, .overtaken = 10, .most_newer = 2};
    EXPECT_EQ(check_train(facts, CheckName::short_packets, train).status, Status::ok);
    train.most_newer = 3;
    EXPECT_EQ(check_train(facts, CheckName::short_packets, train).status, Status::warn);
    EXPECT_THAT(check_train(facts, CheckName::short_packets, train).fix, HasSubstr("one path"));
}

TEST(PathChecks, RepeatedAnswersWarn) {
    const TrainReport train{.sent = 1000, .answered = 1000, .repeated = 1};
    EXPECT_EQ(check_train(good_path(), CheckName::short_packets, train).status, Status::warn);
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
