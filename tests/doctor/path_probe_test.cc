// SPDX-License-Identifier: Apache-2.0
#include "doctor/path_probe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include "base/version.h"
#include "doctor/path_checks.h"
#include "net/clock.h"
#include "own_network.h"
#include "relay.h"
#include "switchd/node.h"

namespace atp::doctor {
namespace {

using test::Disposition;
using test::Relay;
using test::Way;

constexpr Duration patient =
    std::chrono::seconds(20);  // upper bound: the train ends as soon as all packets have arrived
constexpr Duration usual = std::chrono::seconds(2);

std::unique_ptr<switchd::SwitchNode> start_switch(switchd::SwitchNodeConfig config = {}) {
    if (config.udp.local.family() == wire::Family::none) {
        config.udp.local = wire::Address::loopback(wire::Family::ipv4, 0);
    }
    config.memory_bytes = 1'000'000;
    auto node = switchd::SwitchNode::start(config);
    return node ? *std::move(node) : nullptr;
}

PathFacts measure(const wire::Address& address, Duration timeout = usual) {
    return measure_path(address, timeout, [](std::string_view) {});
}

TrainReport run_train(const wire::Address& address, std::uint32_t count, Duration longest_wait) {
    auto probe = PathProbe::open(address);
    if (!probe) return {};
    return (*probe)->run_train(count, 64, 8, longest_wait).value_or(TrainReport{});
}

TEST(PathProbe, SwitchOnTheLoopbackGivesEveryFact) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    const PathFacts facts = measure(node->address());
    ASSERT_FALSE(facts.silence) << to_string(*facts.silence);
    EXPECT_EQ(facts.welcome.software, software_name());
    ASSERT_FALSE(facts.round_trips.empty());
    EXPECT_TRUE(std::ranges::is_sorted(facts.round_trips));
    ASSERT_TRUE(facts.report);
    EXPECT_EQ(facts.report->shards.size(), 1U);
    EXPECT_GT(facts.interface_payload_bytes, 1472U);
    EXPECT_EQ(facts.found_payload_bytes, facts.interface_payload_bytes);
    EXPECT_FALSE(facts.long_question_arrives);
    EXPECT_TRUE(facts.stays_on_this_host);
    ASSERT_TRUE(facts.short_packets);
    ASSERT_TRUE(facts.long_packets);
    EXPECT_EQ(facts.long_packets->bytes, facts.found_payload_bytes);
}

TEST(PathProbe, EcnBitsOfProbesComeBack) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    auto probe = PathProbe::open(node->address());
    ASSERT_TRUE(probe);
    if (!(*probe)->reads_marks()) GTEST_SKIP() << "this kernel does not report ECN bits";
    const auto train = (*probe)->run_train(100, 64, 8, patient);
    ASSERT_TRUE(train);
    EXPECT_EQ(train->answered, 100U);
    EXPECT_EQ(train->marks[static_cast<std::size_t>(wire::Ecn::capable_0)], 100U);
}

TEST(PathProbe, ClearedEcnBitsAreCounted) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    const Relay relay(node->address(), [](Way, unsigned, std::size_t) { return Disposition::pass; });
    const TrainReport train = run_train(relay.address(), 100, patient);
    EXPECT_EQ(train.answered, 100U);
    EXPECT_EQ(train.marks[static_cast<std::size_t>(wire::Ecn::not_capable)], 100U);
}

TEST(PathProbe, LossInEitherDirectionIsCounted) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    const Relay relay(node->address(), [](Way way, unsigned number, std::size_t) {
        return number % 10 == (way == Way::there ? 3U : 7U) ? Disposition::lose : Disposition::pass;
    });
    const TrainReport train = run_train(relay.address(), 1000, std::chrono::milliseconds(500));
    // 100 probes, and every tenth of the 900 answers.
    EXPECT_GE(train.lost(), 190U);
    EXPECT_LT(train.lost(), 1000U);
}

TEST(PathProbe, DirectionThatLosesIsFound) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    for (const Way lossy : {Way::there, Way::back}) {
        const Relay relay(node->address(), [lossy](Way way, unsigned number, std::size_t bytes) {
            // Not the reports, which are longer.
            const bool train = bytes == wire::least_question_bytes && number > 100;
            return way == lossy && train && number % 10 == 3 ? Disposition::lose : Disposition::pass;
        });
        const PathFacts facts = measure(relay.address());
        ASSERT_TRUE(facts.short_packets && facts.short_packets->arrived);
        const TrainReport& train = *facts.short_packets;
        EXPECT_GE(train.lost(), 50U);
        EXPECT_EQ(lossy == Way::there ? train.lost_back() : train.lost_there(), 0U);
    }
}

TEST(PathProbe, LostReportIsAskedForAgain) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    // The first one behind the train, which has 1,000 packets.
    const Relay relay(node->address(), [answers = 0U, lost = false](Way way, unsigned, std::size_t bytes) mutable {
        if (way == Way::there) return Disposition::pass;
        if (bytes == wire::least_question_bytes) ++answers;
        const bool report = answers > 500 && bytes > wire::least_question_bytes;
        return report && !std::exchange(lost, true) ? Disposition::lose : Disposition::pass;
    });
    const PathFacts facts = measure(relay.address());
    ASSERT_TRUE(facts.short_packets);
    EXPECT_TRUE(facts.short_packets->arrived);
}

TEST(PathProbe, RepeatedAndOvertakenAnswersAreCounted) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    const Relay relay(node->address(), [](Way way, unsigned number, std::size_t) {
        if (way == Way::there) return Disposition::pass;
        return number == 10 ? Disposition::repeat : number == 20 ? Disposition::delay : Disposition::pass;
    });
    const TrainReport train = run_train(relay.address(), 200, patient);
    EXPECT_EQ(train.answered, 200U);
    EXPECT_EQ(train.repeated, 1U);
    EXPECT_GE(train.overtaken, 1U);
    EXPECT_GE(train.most_newer, 4U);
}

TEST(PathProbe, NarrowForwardPathIsFoundWithItsLength) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    const Relay relay(node->address(), [](Way, unsigned, std::size_t bytes) {
        return bytes > 2000 ? Disposition::lose : Disposition::pass;
    });
    const PathFacts facts = measure(relay.address());
    EXPECT_LE(facts.found_payload_bytes, 2000U);
    EXPECT_GE(facts.found_payload_bytes, 1992U);
    ASSERT_TRUE(facts.long_question_arrives);
    EXPECT_FALSE(*facts.long_question_arrives);
    EXPECT_EQ(check_path_mtu(facts).status, Status::warn);
}

TEST(PathProbe, NarrowReturnPathIsFound) {
    const auto node = start_switch();
    ASSERT_NE(node, nullptr);
    const Relay relay(node->address(), [](Way way, unsigned, std::size_t bytes) {
        return way == Way::back && bytes > 2000 ? Disposition::lose : Disposition::pass;
    });
    const PathFacts facts = measure(relay.address());
    EXPECT_LE(facts.found_payload_bytes, 2000U);
    ASSERT_TRUE(facts.long_question_arrives);
    EXPECT_TRUE(*facts.long_question_arrives);
    EXPECT_EQ(check_symmetry(facts).status, Status::warn);
}

TEST(PathProbe, ClosedPortIsRefused) {
    wire::Address address;
    { const net::Descriptor closed_again = test::open_on_loopback(address); }
    const PathFacts facts = measure(address, std::chrono::milliseconds(100));
    ASSERT_TRUE(facts.silence);
    EXPECT_EQ(facts.silence->reason, Reason::refused);
}

TEST(PathProbe, SilentPortTimesOut) {
    wire::Address address;
    const net::Descriptor silent = test::open_on_loopback(address);
    const PathFacts facts = measure(address, std::chrono::milliseconds(100));
    ASSERT_TRUE(facts.silence);
    EXPECT_EQ(facts.silence->reason, Reason::timed_out);
}

TEST(PathProbe, SilentParentIsReportedWithItsAddress) {
    wire::Address parent;
    const net::Descriptor silent = test::open_on_loopback(parent);
    switchd::SwitchNodeConfig config;
    config.parent = parent;
    const auto leaf = start_switch(config);
    ASSERT_NE(leaf, nullptr);
    const PathFacts facts = measure(leaf->address());
    ASSERT_TRUE(facts.silence);
    EXPECT_EQ(facts.silence->reason, Reason::rejected);
    ASSERT_TRUE(facts.report);
    EXPECT_EQ(facts.report->parent, to_string(parent));
    EXPECT_FALSE(facts.report->parent_answers);
    EXPECT_EQ(check_tree(facts).status, Status::fail);
}

// The leaf answers at first: it takes its parent for silent after 5 s. The packets that it then refuses are not lost.
TEST(PathProbe, ParentThatEndsMeanwhileIsBlamedAndNoPacketsAre) {
    auto root = start_switch();
    ASSERT_NE(root, nullptr);
    switchd::SwitchNodeConfig config;
    config.parent = root->address();
    const auto leaf = start_switch(config);
    ASSERT_NE(leaf, nullptr);
    const auto answers = [&] { return leaf->snapshot().parent_answers; };
    const Time begin = net::now();
    while (!answers() && net::now() - begin < patient) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const Relay relay(leaf->address(), [&](Way way, unsigned number, std::size_t) {
        // The examination goes on when the leaf refuses.
        if (way == Way::there && number == 30) {
            root.reset();
            while (answers()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return Disposition::pass;
    });
    const PathFacts facts = measure(relay.address(), patient);
    ASSERT_TRUE(facts.silence);
    EXPECT_EQ(facts.silence->reason, Reason::rejected);
    for (const Finding& finding : check_path(facts, software_name())) {
        EXPECT_EQ(finding.status == Status::fail, finding.name.starts_with("tree ")) << finding.name;
    }
}

TEST(PathProbe, OtherVersionOfTheSwitchIsReported) {
    wire::Address address;
    const net::Descriptor socket = test::open_on_loopback(address);
    const std::string its_version = "version " + std::to_string((wire::control_version + 1U) & 0xFU);
    auto answering = std::async(std::launch::async, [&] {
        std::array<std::byte, 1024> bytes{};
        sockaddr_in from{};
        socklen_t size = sizeof from;
        auto* const generic = reinterpret_cast<sockaddr*>(&from);
        const ssize_t asked = recvfrom(socket.number(), bytes.data(), bytes.size(), 0, generic, &size);
        if (asked < 0) return false;
        const auto nonce = wire::nonce_of(std::span(bytes).first(static_cast<std::size_t>(asked)));
        const wire::Refused refused{
            .nonce = nonce.value_or(0), .reason = wire::Refusal::version, .text = "this switch speaks " + its_version};
        const std::size_t length = wire::encode(refused, bytes);
        bytes[0] = std::byte{wire::control_version + 1};
        return sendto(socket.number(), bytes.data(), length, 0, generic, size) > 0;
    });
    const PathFacts facts = measure(address);
    EXPECT_TRUE(answering.get());
    ASSERT_TRUE(facts.silence);
    EXPECT_EQ(facts.silence->reason, Reason::version_mismatch);
    EXPECT_THAT(check_version(facts, "atp").found, testing::HasSubstr(its_version));
}

// ------------------------------------------------------------------------------------------- A link with two lengths

bool run(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

// A switch in a second network namespace, behind a link whose far end accepts only shorter packets than the near end
// sends.
std::string finding_of_link(const wire::Address& at) {
    std::promise<std::string> moved;
    std::promise<void> linked;
    std::promise<bool> started;
    std::promise<void> ended;
    auto other = std::async(std::launch::async, [&] {
        const bool left = unshare(CLONE_NEWNET) == 0;
        moved.set_value(left ? fmt::format("/proc/{}/task/{}/ns/net", getpid(), gettid()) : "");
        linked.get_future().wait();
        const bool up = left && run("ip address add 10.77.0.2/24 dev far && ip link set far up mtu 1400");
        switchd::SwitchNodeConfig config;
        config.udp.local = at;
        const auto node = up ? start_switch(config) : nullptr;
        started.set_value(node != nullptr);
        ended.get_future().wait();
    });
    const std::string place = moved.get_future().get();
    const bool possible = !place.empty() && run("ip link add near mtu 1500 type veth peer name far netns " + place) &&
                          run("ip address add 10.77.0.1/24 dev near && ip link set near up");
    linked.set_value();
    const bool there = started.get_future().get();
    const PathFacts facts = possible && there ? measure(at) : PathFacts{};
    ended.set_value();
    other.wait();
    if (!possible || !there) return test::not_possible_here;
    if (facts.silence) return to_string(*facts.silence);
    if (facts.interface_payload_bytes != 1472) return fmt::format("the interface: {}", facts.interface_payload_bytes);
    if (facts.found_payload_bytes > 1372 || facts.found_payload_bytes < 1364) {
        return fmt::format("the path: {}", facts.found_payload_bytes);
    }
    if (check_path_mtu(facts).status != Status::warn) return "no warning";
    return facts.long_question_arrives == false ? "" : "the narrow forward path was not found";
}

TEST(PathProbe, MtuOfALinkBelowThatOfTheInterfaceIsFound) {
    const auto at = wire::Address::parse("10.77.0.2:4790");
    ASSERT_TRUE(at);
    const auto found = test::run_in_own_network(65'536, [&] { return finding_of_link(*at); });
    if (!found) GTEST_SKIP() << "needs the privilege to make networks, and `ip`";
    EXPECT_EQ(*found, "");
}

}  // namespace
}  // namespace atp::doctor
