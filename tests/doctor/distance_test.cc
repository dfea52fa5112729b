// SPDX-License-Identifier: Apache-2.0
#include "doctor/distance.h"

#include <gtest/gtest.h>

#include <memory>

#include "relay.h"
#include "switchd/node.h"

namespace atp::doctor {
namespace {

TEST(Distance, SwitchOnThisHostIsBehindNoRouter) {
    for (const wire::Family family : {wire::Family::ipv4, wire::Family::ipv6}) {
        switchd::SwitchNodeConfig config;
        config.udp.local = wire::Address::loopback(family, 0);
        config.memory_bytes = 1'000'000;
        const auto node = switchd::SwitchNode::start(config);
        if (!node && family == wire::Family::ipv6) GTEST_SKIP() << "this host has no IPv6";
        ASSERT_TRUE(node);
        EXPECT_EQ(count_routers((*node)->address(), std::chrono::seconds(5)), 0U);
    }
}

TEST(Distance, SilentOrClosedPortHasNone) {
    wire::Address address;
    const net::Descriptor silent = test::open_on_loopback(address);
    EXPECT_EQ(count_routers(address, std::chrono::milliseconds(20)), std::nullopt);
    EXPECT_EQ(count_routers(wire::Address::loopback(wire::Family::ipv4, 1), std::chrono::milliseconds(20)),
              std::nullopt);
}

}  // namespace
}  // namespace atp::doctor
