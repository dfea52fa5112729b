// SPDX-License-Identifier: Apache-2.0
// The program's output and exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "relay.h"
#include "support/shell.h"
#include "switchd/node.h"

namespace atp::doctor {
namespace {

using Json = nlohmann::json;
using test::Disposition;
using test::Outcome;
using test::Way;
using testing::HasSubstr;

Outcome run_doctor(const std::string& flags) {
    return test::shell(std::string(ATP_PROGRAM) + " doctor " + flags + " 2>&1");
}

std::unique_ptr<switchd::SwitchNode> start_plain_switch() {
    switchd::SwitchNodeConfig config;
    config.udp.local = wire::Address::loopback(wire::Family::ipv4, 0);
    auto node = switchd::SwitchNode::start(config);
    return node ? *std::move(node) : nullptr;
}

// Status of the first check whose name begins with `name`.
std::string status_of(const Json& report, const std::string& name) {
    for (const Json& check : report["checks"]) {
        if (check["name"].get<std::string>().starts_with(name)) return check["status"];
    }
    return "not checked";
}

TEST(DoctorCommand, HostWithoutASwitchPasses) {
    const Outcome outcome = run_doctor("--json");
    const Json report = Json::parse(outcome.output, nullptr, false);
    ASSERT_TRUE(report.is_object()) << outcome.output;
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(report["passed"], true);
    EXPECT_NE(status_of(report, "kernel"), "not checked");
    EXPECT_EQ(status_of(report, "reachability"), "not checked");
    for (const Json& check : report["checks"]) {
        EXPECT_EQ(check.size(), 4U);
        EXPECT_NE(check["found"], "");
    }
}

TEST(DoctorCommand, ReachableSwitchIsReportedInLines) {
    const auto node = start_plain_switch();
    ASSERT_NE(node, nullptr);
    const std::string name = to_string(node->address());
    const Outcome outcome = run_doctor("--switch " + name);
    EXPECT_THAT(outcome.output, HasSubstr("ok   reachability " + name + ": it answers\n"));
    EXPECT_THAT(outcome.output, HasSubstr("ok   version " + name));
    EXPECT_THAT(outcome.output, HasSubstr("short packets " + name));
}

TEST(DoctorCommand, MissingSwitchFailsWithStatus1AndARemedy) {
    wire::Address address;
    { const net::Descriptor closed_again = test::open_on_loopback(address); }
    const Outcome outcome = run_doctor("--timeout 100ms --switch " + to_string(address));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.output, HasSubstr("FAIL reachability " + to_string(address)));
    EXPECT_THAT(outcome.output, HasSubstr("start `atp switch --listen 0.0.0.0:"));
}

TEST(DoctorCommand, PathThatLosesPacketsFails) {
    const auto node = start_plain_switch();
    ASSERT_NE(node, nullptr);
    const test::Relay relay(node->address(), [](Way, unsigned number, std::size_t) {
        return number % 5 == 2 ? Disposition::lose : Disposition::pass;
    });
    const Outcome outcome = run_doctor("--json --switch " + to_string(relay.address()));
    const Json report = Json::parse(outcome.output, nullptr, false);
    ASSERT_TRUE(report.is_object()) << outcome.output;
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(report["passed"], false);
    EXPECT_EQ(status_of(report, "short packets"), "fail");
    EXPECT_EQ(status_of(report, "ECN"), "warn");
}

TEST(DoctorCommand, MissingPeerAndUnknownNameFail) {
    const Outcome closed = run_doctor("--timeout 100ms --peer 127.0.0.1:1");
    EXPECT_EQ(closed.status, 1);
    EXPECT_THAT(closed.output, HasSubstr("FAIL peer 127.0.0.1:1"));
    const Outcome unknown = run_doctor("--timeout 100ms --switch nobody.invalid:4790");
    EXPECT_EQ(unknown.status, 1);
    EXPECT_THAT(unknown.output, HasSubstr("FAIL reachability nobody.invalid:4790"));
}

TEST(DoctorCommand, HostsTestThePathsBetweenThem) {
    wire::Address address;
    { const net::Descriptor closed_again = test::open_on_loopback(address); }
    const std::string common = "--world 2 --rendezvous " + to_string(address);
    Outcome first;
    std::thread other([&] { first = run_doctor(common + " --rank 0 --listen 127.0.0.2:0"); });
    const Outcome second = run_doctor(common + " --json --rank 1 --listen 127.0.0.3:0");
    other.join();
    EXPECT_EQ(first.status, 0) << first.output;
    EXPECT_THAT(first.output, HasSubstr("ok   pairs: all 2 ranks reach each other by UDP"));
    EXPECT_EQ(status_of(Json::parse(second.output, nullptr, false), "pairs"), "ok") << second.output;
}

TEST(DoctorCommand, RendezvousThatFailsIsAFinding) {
    const Outcome outcome = run_doctor("--rank 0 --world 2 --rendezvous 203.0.113.9:1 --listen 127.0.0.2:0");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.output, HasSubstr("FAIL pairs: "));
}

TEST(DoctorCommand, BadArgumentsExitWithStatus2) {
    for (const char* flags : {"--switch host", "--switch :", "--peer 127.0.0.1:0", "--timeout 0", "--timeout soon",
                              "--switch", "--unknown", "--rank 0", "--listen 127.0.0.1:0", "--world 1",
                              "--rank 2 --world 2 --rendezvous 127.0.0.1:1 --listen 127.0.0.1:0"}) {
        EXPECT_EQ(run_doctor(flags).status, 2) << flags;
    }
}

}  // namespace
}  // namespace atp::doctor
