// SPDX-License-Identifier: Apache-2.0
// What a rank learns of its switch, or why it cannot use it.
#include "comm/switch_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric.h"
#include "net/clock.h"
#include "net/udp_socket.h"
#include "relay.h"
#include "support/fails.h"

namespace atp::test {
namespace {

using comm::reach_address;
using comm::reach_switch;
using testing::HasSubstr;

Time shortly() { return net::now() + std::chrono::milliseconds(300); }
Time patiently() { return net::now() + longest_wait; }

comm::Options named(const std::string& address) {
    comm::Options options;
    options.switch_address = address;
    return options;
}

TEST(SwitchReach, AnsweringSwitchTellsItsPathAndTheLanesThatFit) {
    const auto node = start(small_switch());
    const Relay narrow(node->address(), [](Way, unsigned, std::size_t bytes) {
        return bytes > 2000 ? Disposition::lose : Disposition::pass;
    });
    const auto whole = reach_switch(named(address_of(*node)), patiently());
    ASSERT_TRUE(whole) << to_string(whole.error());
    EXPECT_EQ(whole->address, node->address());
    EXPECT_EQ(whole->welcome.path.size(), 1U);
    EXPECT_EQ(whole->lanes, ATP_MAX_LANES / 8 * 8);
    const auto part = reach_switch(named(to_string(narrow.address())), patiently());
    ASSERT_TRUE(part) << to_string(part.error());
    EXPECT_EQ(part->lanes, 480U) << "whole vectors of 8 lanes in 1,992 to 2,000 bytes";
    comm::Options options = named(to_string(narrow.address()));
    options.lanes = 500;
    const auto refused = reach_switch(options, patiently());
    EXPECT_TRUE(fails(refused, {.reason = Reason::too_large,
                                .peer = options.switch_address,
                                .text = HasSubstr("500 lanes requested, but the path carries 48")}));
}

TEST(SwitchReach, WhatNoSwitchIsNeededForIsRefusedAtOnce) {
    const auto nameless = reach_switch({}, never);
    ASSERT_FALSE(nameless);
    EXPECT_EQ(nameless.error().reason, Reason::malformed);
    EXPECT_THAT(nameless.error().text, HasSubstr("no switch is named, and not all ranks share one memory"));
    comm::Options options = named("[::1]:1");
    options.multicast.requested = true;
    const auto unsupported = reach_switch(options, never);
    EXPECT_TRUE(fails(unsupported,
                      {.reason = Reason::unsupported, .peer = "[::1]:1", .text = HasSubstr("multicast needs IPv4")}));
}

TEST(SwitchReach, SilentAddressTimesOutWithTheNextStep) {
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    const std::string address = to_string((*silent)->local());
    const auto of_switch = reach_switch(named(address), shortly());
    ASSERT_TRUE(
        fails(of_switch,
              {.reason = Reason::timed_out, .peer = address, .text = HasSubstr("start one there with `atp switch`")}));
    EXPECT_THAT(of_switch.error().text, HasSubstr("`atp doctor --switch " + address + "`"));
    const auto of_rank = reach_address((*silent)->local(), {}, shortly());
    EXPECT_TRUE(fails(of_rank, {.text = HasSubstr("`atp doctor` checks the path")}));
}

// It may be about to find it, and its reason says more than a timeout.
TEST(SwitchReach, SwitchWithoutItsParentIsAskedAgainUntilTheDeadline) {
    switchd::SwitchNodeConfig config = small_switch();
    { const net::Descriptor closed_again = open_on_loopback(config.parent); }
    const auto leaf = start(config);
    const auto refused = reach_switch(named(address_of(*leaf)), shortly());
    EXPECT_TRUE(fails(refused, {.reason = Reason::rejected, .text = HasSubstr(to_string(config.parent))}));
    std::unique_ptr<switchd::SwitchNode> root;
    const Relay relay(leaf->address(), [&](Way way, unsigned number, std::size_t) {
        if (way == Way::there && number == 2) {
            switchd::SwitchNodeConfig above = small_switch();
            above.udp.local = config.parent;
            root = start(above);
        }
        return Disposition::pass;
    });
    const auto reach = reach_switch(named(to_string(relay.address())), patiently());
    ASSERT_TRUE(reach) << to_string(reach.error());
    EXPECT_EQ(reach->welcome.path.size(), 2U);
}

}  // namespace
}  // namespace atp::test
