// SPDX-License-Identifier: Apache-2.0
#include "control/address_range.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

bool contains(std::string_view ranges, const std::string& host) {
    return contain(*parse_ranges(ranges), *wire::Address::parse(host + ":4790"));
}

TEST(AddressRange, ContainsTheAddressesOfItsNetworksOnly) {
    EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
    EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.1"));
    EXPECT_TRUE(contains("10.1.2.0/23,192.0.2.7", "10.1.3.255"));
    EXPECT_TRUE(contains("10.1.2.0/23,192.0.2.7", "192.0.2.7"));
    EXPECT_FALSE(contains("10.1.2.0/23,192.0.2.7", "192.0.2.8"));
    EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.9"));
    EXPECT_FALSE(contains("0.0.0.0/0", "[2001:db8::1]")) << "another family";
    EXPECT_TRUE(contains("2001:db8::/33", "[2001:db8:7fff::1]"));
    EXPECT_FALSE(contains("2001:db8::/33", "[2001:db8:8000::1]"));
}

TEST(AddressRange, TextIsReadAndWritten) {
    for (const std::string_view text : {"10.0.0.0/8", "10.0.0.0/8,2001:db8::/33", "192.0.2.7/32"}) {
        EXPECT_EQ(to_string(*parse_ranges(text)), text);
    }
    EXPECT_EQ(to_string(*parse_ranges("192.0.2.7")), "192.0.2.7/32");
    for (const std::string_view text : {"", ",", "10.0.0.0/8,", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                        "::/129", "host", "10.0.0.0:4790"}) {
        EXPECT_FALSE(parse_ranges(text)) << text;
    }
}

}  // namespace
}  // namespace atp::control
