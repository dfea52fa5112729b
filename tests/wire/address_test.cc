// SPDX-License-Identifier: Apache-2.0
#include "wire/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

namespace atp::wire {
namespace {

TEST(Address, TextParsesToTheSameAddress) {
    for (const char* text : {"10.1.2.3:4791", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:1", "[2001:db8::7]:443",
                             "[::]:0", "[fe80::1%1]:9"}) {
        const auto address = Address::parse(text);
        ASSERT_TRUE(address) << text << ": " << to_string(address.error());
        EXPECT_EQ(to_string(*address), text);
    }
}

TEST(Address, FamilyPortAndKindAreReported) {
    const auto v4 = Address::parse("127.0.0.1:80");
    const auto v6 = Address::parse("[ff02::1]:81");
    EXPECT_EQ(v4->family(), Family::ipv4);
    EXPECT_EQ(v4->port(), 80);
    EXPECT_TRUE(v4->is_loopback());
    EXPECT_FALSE(v4->is_multicast());
    EXPECT_EQ(v6->family(), Family::ipv6);
    EXPECT_EQ(v6->port(), 81);
    EXPECT_TRUE(v6->is_multicast());
    EXPECT_FALSE(v6->is_loopback());
    EXPECT_TRUE(Address::any(Family::ipv4, 5).is_any());
    EXPECT_TRUE(Address::any(Family::ipv6, 5).is_any());
    EXPECT_EQ(Address::any(Family::ipv6, 5).port(), 5);
    EXPECT_EQ(v4->size(), sizeof(sockaddr_in));
    EXPECT_EQ(v6->size(), sizeof(sockaddr_in6));
}

TEST(Address, MalformedAddressIsRefusedWithTheAcceptedForm) {
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
        const auto address = Address::parse(text);
        ASSERT_FALSE(address) << text << " became " << to_string(*address);
        EXPECT_EQ(address.error().operation, Operation::parse);
        EXPECT_EQ(address.error().reason, Reason::malformed) << text;
        EXPECT_FALSE(address.error().recoverable());
        EXPECT_EQ(address.error().peer.find(text), 0U) << text;
        EXPECT_FALSE(address.error().text.empty());
    }
}

TEST(Address, Ipv4InsideIpv6IsIpv4) {
    const auto mapped = Address::parse("[::ffff:10.0.0.1]:80");
    ASSERT_TRUE(mapped);
    EXPECT_EQ(mapped->family(), Family::ipv4);
    EXPECT_EQ(*mapped, *Address::parse("10.0.0.1:80"));
}

TEST(Address, EmptyAddressEqualsOnlyItself) {
    const Address none;
    EXPECT_EQ(none, Address());
    EXPECT_EQ(none.size(), 0U);
    EXPECT_NE(none, Address::any(Family::ipv4, 0));
    EXPECT_NE(none, Address::any(Family::ipv6, 0));
    EXPECT_EQ(to_string(none), "none");
    sockaddr_in6 bytes{};
    bytes.sin6_family = AF_UNIX;
    sockaddr generic{};
    std::memcpy(&generic, &bytes, sizeof generic);
    EXPECT_EQ(Address::from(&generic, sizeof bytes), none);
    generic.sa_family = AF_INET;
    EXPECT_EQ(Address::from(&generic, 4), none) << "the length is too short for AF_INET";
}

TEST(Address, EqualityAndOrderIgnoreTheFlow) {
    const Address low = *Address::parse("10.0.0.9:80");
    const Address high = *Address::parse("10.0.0.10:70");
    EXPECT_LT(low, high);
    EXPECT_LT(low, low.with_port(81));
    EXPECT_LT(high, *Address::parse("[::1]:1"));
    EXPECT_NE(*Address::parse("[fe80::1]:9"), *Address::parse("[fe80::1%1]:9"));

    sockaddr_in6 bytes{};
    bytes.sin6_family = AF_INET6;
    bytes.sin6_addr = in6addr_loopback;
    bytes.sin6_port = htons(9);
    bytes.sin6_flowinfo = htonl(77);
    sockaddr_storage storage{};
    std::memcpy(&storage, &bytes, sizeof bytes);
    const Address flowing = Address::from(reinterpret_cast<const sockaddr*>(&storage), sizeof bytes);
    EXPECT_EQ(flowing, *Address::parse("[::1]:9"));
    EXPECT_EQ(flowing.hash(), Address::parse("[::1]:9")->hash());
    EXPECT_EQ(flowing <=> *Address::parse("[::1]:9"), std::strong_ordering::equal);
}

TEST(Address, HashesOfSimilarAddressesAreSpread) {
    std::unordered_set<Address> seen;
    std::set<std::uint64_t> low_bits;
    for (int host = 0; host < 32; ++host) {
        for (int port = 5000; port < 5032; ++port) {
            for (const std::string& text : {"10.0.0." + std::to_string(host) + ":" + std::to_string(port),
                                            "[fd00::" + std::to_string(host) + "]:" + std::to_string(port)}) {
                const Address address = *Address::parse(text);
                EXPECT_TRUE(seen.insert(address).second) << text;
                low_bits.insert(address.hash() % 4096);
            }
        }
    }
    // 2,048 random hashes fill about 1,600 of 4,096 buckets.
    EXPECT_GT(low_bits.size(), 1400U);
}

}  // namespace
}  // namespace atp::wire
