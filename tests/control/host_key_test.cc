// SPDX-License-Identifier: Apache-2.0
#include "control/host_key.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

HostKey key_of_text(const char* text) { return HostKey::of(*wire::Address::parse(text)); }

TEST(HostKey, IsAnAddressOfIpv4AndANetworkOfIpv6) {
    EXPECT_EQ(key_of_text("10.0.0.1:1"), key_of_text("10.0.0.1:2"));
    EXPECT_NE(key_of_text("10.0.0.1:1"), key_of_text("10.0.0.2:1"));
    EXPECT_EQ(key_of_text("[2001:db8::1]:1"), key_of_text("[2001:db8::ffff:2]:1"));
    EXPECT_NE(key_of_text("[2001:db8::1]:1"), key_of_text("[2001:db8:0:1::1]:1"));
    EXPECT_NE(key_of_text("0.0.0.0:1"), key_of_text("[::]:1"));
}

}  // namespace
}  // namespace atp::control
