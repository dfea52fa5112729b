// SPDX-License-Identifier: Apache-2.0
#include "wire/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "net/resolve.h"
#include "system_calls.h"

namespace atp::net {
namespace {

TEST(wire::Address, ReadsBackWhatItPrints) {
    for (const char* text : {"10.1.2.3:4791", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:1", "[2001:db8::7]:443",
                             "[::]:0", "[fe80::1%lo]:9"}) {
        const auto address = wire::Address::parse(text);
        ASSERT_TRUE(address) << text << ": " << to_string(address.error());
        EXPECT_EQ(to_string(*address), text);
    }
}

TEST(wire::Address, KnowsFamilyPortAndKind) {
    const auto v4 = wire::Address::parse("127.0.0.1:80");
    const auto v6 = wire::Address::parse("[ff02::1]:81");
    EXPECT_EQ(v4->family(), wire::Family::ipv4);
    EXPECT_EQ(v4->port(), 80);
    EXPECT_TRUE(v4->is_loopback());
    EXPECT_FALSE(v4->is_multicast());
    EXPECT_EQ(v6->family(), wire::Family::ipv6);
    EXPECT_EQ(v6->port(), 81);
    EXPECT_TRUE(v6->is_multicast());
    EXPECT_FALSE(v6->is_loopback());
    EXPECT_TRUE(wire::Address::any(wire::Family::ipv4, 5).is_any());
    EXPECT_TRUE(wire::Address::any(wire::Family::ipv6, 5).is_any());
    EXPECT_EQ(wire::Address::any(wire::Family::ipv6, 5).port(), 5);
    EXPECT_EQ(v4->size(), sizeof(sockaddr_in));
    EXPECT_EQ(v6->size(), sizeof(sockaddr_in6));
}

TEST(wire::Address, RefusesWhatIsNoAddressAndSaysWhatIs) {
    for (const char* text : {"",
                             ":",
                             "10.0.0.1",
                             "10.0.0.1:",
                             ":80",
                             "10.0.0.1:65536",
                             "10.0.0.1:-1",
                             "10.0.0.1:8o",
                             "10.0.0.1: 80",
                             "10.0.0.256:80",
                             "10.0.1:80",
                             "0x7f.1:80",
                             "::1:80",
                             "[::1]",
                             "[::1]80",
                             "[::1:80",
                             "[]:80",
                             "[::g]:80",
                             "[::1%nonexistent]:80",
                             "[10.0.0.1%lo]:80",
                             "host:80"}) {
        const auto address = wire::Address::parse(text);
        ASSERT_FALSE(address) << text << " became " << to_string(*address);
        EXPECT_EQ(address.error().operation, Operation::parse);
        EXPECT_EQ(address.error().reason, Reason::malformed) << text;
        EXPECT_FALSE(address.error().recoverable());
        EXPECT_EQ(address.error().peer.find(text), 0U) << text;
        EXPECT_FALSE(address.error().text.empty());
    }
}

TEST(wire::Address, IPv4InsideIPv6IsIPv4) {
    const auto mapped = wire::Address::parse("[::ffff:10.0.0.1]:80");
    ASSERT_TRUE(mapped);
    EXPECT_EQ(mapped->family(), wire::Family::ipv4);
    EXPECT_EQ(*mapped, *wire::Address::parse("10.0.0.1:80"));
}

TEST(wire::Address, NobodyEqualsOnlyNobody) {
    const wire::Address nobody;
    EXPECT_EQ(nobody, wire::Address());
    EXPECT_EQ(nobody.size(), 0U);
    EXPECT_NE(nobody, wire::Address::any(wire::Family::ipv4, 0));
    EXPECT_NE(nobody, wire::Address::any(wire::Family::ipv6, 0));
    EXPECT_EQ(to_string(nobody), "nobody");
    sockaddr_in6 bytes{};
    bytes.sin6_family = AF_UNIX;
    sockaddr generic{};
    std::memcpy(&generic, &bytes, sizeof generic);
    EXPECT_EQ(wire::Address::from(&generic, sizeof bytes), nobody);
    generic.sa_family = AF_INET;
    EXPECT_EQ(wire::Address::from(&generic, 4), nobody) << "too short for the family that it names";
}

TEST(wire::Address, EqualityAndOrderLookAtHostPortAndScopeNotAtFlow) {
    const wire::Address low = *wire::Address::parse("10.0.0.9:80");
    const wire::Address high = *wire::Address::parse("10.0.0.10:70");
    EXPECT_LT(low, high);
    EXPECT_LT(low, low.with_port(81));
    EXPECT_LT(high, *wire::Address::parse("[::1]:1"));
    EXPECT_NE(*wire::Address::parse("[fe80::1]:9"), *wire::Address::parse("[fe80::1%lo]:9"));

    sockaddr_in6 bytes{};
    bytes.sin6_family = AF_INET6;
    bytes.sin6_addr = in6addr_loopback;
    bytes.sin6_port = htons(9);
    bytes.sin6_flowinfo = htonl(77);
    sockaddr_storage storage{};
    std::memcpy(&storage, &bytes, sizeof bytes);
    const wire::Address flowing = wire::Address::from(reinterpret_cast<const sockaddr*>(&storage), sizeof bytes);
    EXPECT_EQ(flowing, *wire::Address::parse("[::1]:9"));
    EXPECT_EQ(flowing.hash(), wire::Address::parse("[::1]:9")->hash());
    EXPECT_EQ(flowing <=> *wire::Address::parse("[::1]:9"), std::strong_ordering::equal);
}

TEST(wire::Address, HashSpreadsNeighbours) {
    std::unordered_set<wire::Address> seen;
    std::set<std::uint64_t> low_bits;
    for (int host = 0; host < 32; ++host) {
        for (int port = 5000; port < 5032; ++port) {
            for (const std::string& text : {"10.0.0." + std::to_string(host) + ":" + std::to_string(port),
                                            "[fd00::" + std::to_string(host) + "]:" + std::to_string(port)}) {
                const wire::Address address = *wire::Address::parse(text);
                EXPECT_TRUE(seen.insert(address).second) << text;
                low_bits.insert(address.hash() % 4096);
            }
        }
    }
    // 2,048 balls into 4,096 boxes fill about 1,600 of them.
    EXPECT_GT(low_bits.size(), 1400U);
}

TEST(Resolve, AnswersNumbersWithoutAResolver) {
    const auto found = resolve("[::1]:5");
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1U);
    EXPECT_EQ(found->front(), wire::Address::loopback(wire::Family::ipv6, 5));
}

TEST(Resolve, KnowsLocalhost) {
    const auto found = resolve("localhost:7", wire::Family::ipv4);
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ(found->front(), wire::Address::loopback(wire::Family::ipv4, 7));
}

TEST(Resolve, RefusesAFamilyThatTheNumberIsNotOf) {
    const auto found = resolve("127.0.0.1:5", wire::Family::ipv6);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().operation, Operation::resolve);
    EXPECT_EQ(found.error().reason, Reason::malformed);
}

TEST(Resolve, RefusesAMistypedNumberWithoutAskingAnybody) {
    for (const char* text : {"10.0.0.256:80", "10.0.0:80", "1:80", "host.7:80", "bad host:80", "a/b:80"}) {
        const auto found = resolve(text);
        ASSERT_FALSE(found) << text;
        EXPECT_EQ(found.error().operation, Operation::parse) << text;
    }
}

TEST(Resolve, SaysWhyAResolverHasNoAnswer) {
    const test::WithSystemCalls calls;
    const std::pair<int, Reason> cases[] = {{EAI_NONAME, Reason::unknown_name}, {EAI_AGAIN, Reason::timed_out}};
    for (const auto& [status, reason] : cases) {
        test::system_calls.getaddrinfo_fails = status;
        const auto found = resolve("switch.example:4791");
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().operation, Operation::resolve);
        EXPECT_EQ(found.error().reason, reason);
        EXPECT_EQ(found.error().peer, "switch.example:4791");
        EXPECT_TRUE(found.error().recoverable());
        EXPECT_GT(found.error().elapsed.count(), 0);
        EXPECT_FALSE(found.error().text.empty());
    }
}

TEST(Error, PrintsOperationPeerReasonAndTime) {
    const Error error{Operation::bind,
                      Reason::denied,
                      EACCES,
                      "10.0.0.1:80",
                      std::chrono::microseconds(1500),
                      "ports below 1024 need privilege"};
    EXPECT_EQ(to_string(error),
              "bind 10.0.0.1:80: denied (EACCES, Permission denied) after 1.500 ms: ports below 1024 need privilege");
    EXPECT_EQ(to_string(Error{Operation::parse, Reason::malformed, 0, "x", {}, ""}), "parse x: malformed");
}

TEST(Error, TellsWhatTryingAgainMayMend) {
    EXPECT_EQ(reason_of(EMSGSIZE), Reason::too_large);
    EXPECT_EQ(reason_of(ENOBUFS), Reason::exhausted);
    EXPECT_EQ(reason_of(EIO), Reason::failed);
    EXPECT_TRUE(fail_with_errno(Operation::send, ENETUNREACH).value().recoverable());
    EXPECT_TRUE(fail_with_errno(Operation::send, EINTR).value().recoverable());
    EXPECT_FALSE(fail_with_errno(Operation::send, EMSGSIZE).value().recoverable());
    EXPECT_FALSE(fail_with_errno(Operation::send, EIO).value().recoverable());
}

}  // namespace
}  // namespace atp::net
