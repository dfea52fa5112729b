// SPDX-License-Identifier: Apache-2.0
#include "crypto/tenant_key.h"

#include <gtest/gtest.h>

#include "hex.h"

namespace atp::crypto {
namespace {

constexpr std::string_view digits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

std::string lines_of(std::string_view version, std::string_view id, std::string_view tenant, std::string_view key) {
    return "atp_key = " + std::string(version) + "\nid = " + std::string(id) + "\ntenant = " + std::string(tenant) +
           "\nkey = " + std::string(key) + "\n";
}

std::string problem_of(std::string_view text) {
    const auto key = parse_key(text);
    return key ? "" : key.error().text;
}

TEST(TenantKey, WrittenKeyReadsBack) {
    const TenantKey key{.id = 4'294'967'295, .tenant = "vision-2.a_b", .key = counting_key()};
    const std::string text = to_text(key);
    EXPECT_NE(text.find(digits), std::string::npos);
    const auto read = parse_key(text);
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->id, key.id);
    EXPECT_EQ(read->tenant, key.tenant);
    EXPECT_TRUE(read->at_switch.empty());
    EXPECT_EQ(hex(read->key.bytes()), digits);
}

TEST(TenantKey, ReadsBlanksCommentsAndAnyOrder) {
    const auto read =
        parse_key("# a comment\n\n  key=" + std::string(digits) + "\r\nid = 7\n\ttenant = t\natp_key = 1");
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->id, 7U);
    EXPECT_EQ(hex(read->key.bytes()), digits);
}

TEST(TenantKey, DamagedTextIsRefusedByItsLine) {
    EXPECT_EQ(problem_of(lines_of("1", "7", "t", digits)), "");
    EXPECT_NE(problem_of(lines_of("2", "7", "t", digits)).find("line 1 has a name or a value that"), std::string::npos);
    for (const std::string_view id : {"0", "-1", "4294967296", "7x", ""}) {
        EXPECT_NE(problem_of(lines_of("1", id, "t", digits)).find("line 2"), std::string::npos) << id;
    }
    for (const std::string_view tenant : {"", "a b", "a/b", "\x1b[0m"}) {
        EXPECT_NE(problem_of(lines_of("1", "7", tenant, digits)).find("line 3"), std::string::npos) << tenant;
    }
    EXPECT_NE(problem_of(lines_of("1", "7", std::string(64, 'a'), digits)).find("line 3"), std::string::npos);
    for (const std::string_view key : {digits.substr(1), digits.substr(2), std::string_view("0x")}) {
        EXPECT_NE(problem_of(lines_of("1", "7", "t", key)).find("line 4"), std::string::npos) << key;
    }
    EXPECT_NE(problem_of(lines_of("1", "7", "t", digits) + "id = 8\n").find("line 5"), std::string::npos);
    EXPECT_NE(problem_of(lines_of("1", "7", "t", digits) + "colour = red\n").find("line 5"), std::string::npos);
    EXPECT_NE(problem_of(lines_of("1", "7", "t", digits) + "words\n").find("no '='"), std::string::npos);
    EXPECT_NE(problem_of("atp_key = 1\nid = 7\ntenant = t\n").find("no line 'key = ...'"), std::string::npos);
    EXPECT_NE(problem_of("").find("no line 'atp_key = ...'"), std::string::npos);
}

TEST(TenantKey, AnErrorHoldsNoSecret) {
    const std::string text = problem_of(lines_of("1", "7", "t", std::string(digits) + "x"));
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find("0001"), std::string::npos);
}

TEST(TenantKey, DerivedKeysDifferByPurposeAndName) {
    const SecretKey key = counting_key();
    EXPECT_EQ(hex(derive(key, for_store).bytes()), "23caa064b1e155243aa72b9873253d96f1749351a51d31d6fb260e43df736195");
    EXPECT_EQ(hex(derive(key, for_join, "leaf3").bytes()),
              "4dc6ab3dc5afeca9c2478b522061157b425ec56314bcad5b838ae75e76670cc0");
    EXPECT_NE(hex(derive(key, "ab", "c").bytes()), hex(derive(key, "a", "bc").bytes()));
    EXPECT_NE(hex(derive(key, "abc").bytes()), hex(derive(key, "", "abc").bytes()));
}

TEST(TenantKey, SwitchGetsOnlyItsOwnKey) {
    const TenantKey tenant{.id = 7, .tenant = "vision", .key = counting_key()};
    const TenantKey leaf = key_for_switch(tenant, "leaf3");
    EXPECT_EQ(hex(leaf.key.bytes()), hex(derive(tenant.key, for_join, "leaf3").bytes()));
    const auto read = parse_key(to_text(leaf));
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->at_switch, "leaf3");
    EXPECT_EQ(read->id, 7U);
    EXPECT_EQ(to_text(leaf).find(digits), std::string::npos);
}

TEST(TenantKey, NamesHaveNoCharactersOfTerminals) {
    EXPECT_TRUE(is_key_name("leaf-3.Rack_2"));
    for (const std::string_view name : {"", "a b", "a\n", "\x1b", "ä", "a="}) EXPECT_FALSE(is_key_name(name)) << name;
    EXPECT_TRUE(is_key_name(std::string(63, 'a')));
    EXPECT_FALSE(is_key_name(std::string(64, 'a')));
}

}  // namespace
}  // namespace atp::crypto
