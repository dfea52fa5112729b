// SPDX-License-Identifier: Apache-2.0
#include "p4agent/thrift.h"

#include <gtest/gtest.h>

#include "fake_thrift.h"
#include "support/fails.h"

namespace atp::p4agent {
namespace {

using std::chrono::seconds;

TEST(Thrift, ReturnsNumbersTextsListsAndStructs) {
    FakeThrift server;
    auto client = ThriftConnection::open(server.address(), seconds(5));
    ASSERT_TRUE(client);
    server.answer("s:number", reply_number64(-5));
    server.answer("s:text", reply_text("abc"));
    server.answer("s:counter", reply_counter(9));
    server.answer("s:ports", reply_ports({"in0", "in1"}));
    EXPECT_EQ(client->call("s", "number", {})->number, -5);
    EXPECT_EQ(client->call("s", "text", {})->text, "abc");
    EXPECT_EQ(client->call("s", "counter", {})->field(2).number, 9);
    const auto ports = client->call("s", "ports", {});
    ASSERT_EQ(ports->list.size(), 2U);
    EXPECT_EQ(ports->list[1].field(1).number, 1);
    EXPECT_EQ(ports->list[1].field(2).text, "in1");
    EXPECT_TRUE(client->call("s", "nothing", {}));
}

TEST(Thrift, WritesArgumentsWithTheirNumbersAndTypes) {
    FakeThrift server;
    auto client = ThriftConnection::open(server.address(), seconds(5));
    ASSERT_TRUE(client->call("s", "f", ThriftArguments().number32(-1).text("ab").flag(true)));
    const std::string expected(
        "\x08\0\x01\xff\xff\xff\xff\x0b\0\x02\0\0\0\x02"
        "ab\x02\0\x03\x01\0",
        21);
    EXPECT_EQ(server.calls("s:f"), std::vector<std::string>{expected});
}

TEST(Thrift, AnExceptionIsRejectedAndLaterCallsPass) {
    FakeThrift server;
    auto client = ThriftConnection::open(server.address(), seconds(5));
    server.answer("s:bad", reply_exception());
    EXPECT_TRUE(fails(client->call("s", "bad", {}), {.reason = Reason::rejected}));
    EXPECT_TRUE(client->call("s", "good", {}));
}

TEST(Thrift, AClosedConnectionIsAnError) {
    FakeThrift server;
    auto client = ThriftConnection::open(server.address(), seconds(5));
    server.close_connections();
    EXPECT_TRUE(fails(client->call("s", "f", {}), {.reason = Reason::closed}));
}

TEST(Thrift, WithoutAServerOpenFails) {
    wire::Address nobody;
    {
        const FakeThrift server;
        nobody = server.address();
    }
    EXPECT_TRUE(fails(ThriftConnection::open(nobody, seconds(5)), {.reason = Reason::unreachable}));
}

}  // namespace
}  // namespace atp::p4agent
