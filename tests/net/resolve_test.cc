// SPDX-License-Identifier: Apache-2.0
#include "net/resolve.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netdb.h>

#include <utility>

#include "support/fails.h"
#include "system_calls.h"

namespace atp::net {
namespace {

TEST(Resolve, NumericAddressNeedsNoResolver) {
    const auto found = resolve("[::1]:5");
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1U);
    EXPECT_EQ(found->front(), wire::Address::loopback(wire::Family::ipv6, 5));
}

TEST(Resolve, LocalhostIsKnown) {
    const auto found = resolve("localhost:7", wire::Family::ipv4);
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ(found->front(), wire::Address::loopback(wire::Family::ipv4, 7));
}

TEST(Resolve, NameOfAnInterfaceGivesTheAddressItsScope) {
    const auto by_name = resolve("[fe80::1%lo]:9");
    ASSERT_TRUE(by_name) << to_string(by_name.error());
    EXPECT_EQ(by_name->front(), *wire::Address::parse(fmt::format("[fe80::1%{}]:9", if_nametoindex("lo"))));
    EXPECT_EQ(by_name->front(), resolve(to_string(by_name->front()))->front()) << "as it is printed";
}

TEST(Resolve, UnknownInterfaceIsRefusedByName) {
    const auto found = resolve("[fe80::1%nonexistent]:9");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().reason, Reason::malformed);
    EXPECT_NE(to_string(found.error()).find("no interface 'nonexistent'"), std::string::npos);
}

TEST(Resolve, NumericAddressOfAnotherFamilyIsRefused) {
    const auto found = resolve("127.0.0.1:5", wire::Family::ipv6);
    EXPECT_TRUE(fails(found, {.operation = Operation::resolve, .reason = Reason::malformed}));
}

TEST(Resolve, MalformedAddressIsRefusedWithoutALookup) {
    for (const char* text : {"10.0.0.256:80", "10.0.0:80", "1:80", "host.7:80", "bad host:80", "a/b:80"}) {
        const auto found = resolve(text);
        EXPECT_TRUE(fails(found, {.operation = Operation::parse})) << text;
    }
}

TEST(Resolve, FailedLookupReportsItsReason) {
    const test::WithSystemCalls calls;
    const std::pair<int, Reason> cases[] = {{EAI_NONAME, Reason::unknown_name}, {EAI_AGAIN, Reason::unreachable}};
    for (const auto& [status, reason] : cases) {
        test::system_calls.getaddrinfo_fails = status;
        const auto found = resolve("switch.example:4791");
        ASSERT_TRUE(fails(found, {.operation = Operation::resolve, .reason = reason, .peer = "switch.example:4791"}));
        EXPECT_TRUE(found.error().recoverable());
        EXPECT_GT(found.error().elapsed.count(), 0);
        EXPECT_FALSE(found.error().text.empty());
    }
}

}  // namespace
}  // namespace atp::net
