// SPDX-License-Identifier: Apache-2.0
#include "comm/own_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "net/udp_socket.h"
#include "support/fails.h"

namespace atp::comm {
namespace {

using testing::HasSubstr;

void expect_refused(const std::string& listen, Reason reason, const std::string& text) {
    const auto node = serve_at(listen, {});
    EXPECT_TRUE(fails(node, {.reason = reason, .printed = HasSubstr(text)})) << listen;
}

TEST(OwnServer, OtherFormsAreRefusedWithTheAcceptedOnes) {
    for (const std::string listen : {"host", "127.0.0.1:9-8", "127.0.0.1:x", "127.0.0.1:1-", "127.0.0.1:70000"}) {
        expect_refused(listen, Reason::malformed, listen + ": malformed: name a switch, or an address");
        EXPECT_FALSE(host_of_listen(listen));
    }
}

TEST(OwnServer, AddressThatOtherHostsCannotUseIsRefused) {
    expect_refused("0.0.0.0:0", Reason::malformed, "other hosts need the address of an interface");
    expect_refused("nobody.invalid:0", Reason::unknown_name, "nobody.invalid");
}

TEST(OwnServer, HostHasTheFirstPortOfItsRange) {
    EXPECT_EQ(host_of_listen("127.0.0.7:5000-5009"), *wire::Address::parse("127.0.0.7:5000"));
    EXPECT_EQ(host_of_listen("127.0.0.7:0"), *wire::Address::parse("127.0.0.7:0"));
}

TEST(OwnServer, FirstFreePortOfTheRangeServes) {
    const auto taken = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(taken);
    const unsigned port = (*taken)->local().port();
    const std::string range = "127.0.0.1:" + std::to_string(port) + "-";
    expect_refused(range + std::to_string(port), Reason::in_use, std::to_string(port));
    const auto node = serve_at(range + std::to_string(port + 20), {});
    ASSERT_TRUE(node) << to_string(node.error());
    EXPECT_GT((*node)->address().port(), port);
    EXPECT_LE((*node)->address().port(), port + 20);
}

TEST(OwnServer, AddressOfNoInterfaceEndsTheSearch) {
    expect_refused("192.0.2.1:5000-5009", Reason::unreachable, "192.0.2.1:5000");
}

TEST(OwnServer, ServerHasNoAggregatorsAndASwitchThoseOfItsMemory) {
    const auto server = serve_at("127.0.0.1:0", {});
    const auto leaf = serve_at("127.0.0.1:0", {.memory_bytes = 1'000'000, .lanes = 64});
    ASSERT_TRUE(server && leaf);
    EXPECT_EQ(switchd::aggregators_of_shard((*server)->config()), 0U);
    EXPECT_GT(switchd::aggregators_of_shard((*leaf)->config()), 1000U);
    EXPECT_EQ((*leaf)->config().lanes, 64U);
}

}  // namespace
}  // namespace atp::comm
