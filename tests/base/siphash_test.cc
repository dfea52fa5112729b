// SPDX-License-Identifier: Apache-2.0
// The reference vectors of SipHash-2-4: the key is 00 01 … 0f, the message 00 01 … of the length.
#include "base/siphash.h"

#include <gtest/gtest.h>

#include <vector>

namespace atp {
namespace {

constexpr Secret reference{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};

std::vector<std::byte> message_of(std::size_t length) {
    std::vector<std::byte> message(length);
    for (std::size_t i = 0; i < length; ++i) message[i] = static_cast<std::byte>(i);
    return message;
}

TEST(SipHash, EqualsTheReferenceVectors) {
    EXPECT_EQ(siphash(reference, message_of(0)), 0x726fdb47dd0e0e31U);
    static_assert(number_of_secret(reference) == 0x726fdb47dd0e0e31U);
    EXPECT_EQ(siphash(reference, message_of(1)), 0x74f839c593dc67fdU);
    EXPECT_EQ(siphash(reference, message_of(8)), 0x93f5f5799a932462U);
    EXPECT_EQ(siphash(reference, message_of(15)), 0xa129ca6149be45e5U);
}

TEST(SipHash, EachBitOfKeyAndMessageChangesTheCode) {
    const auto message = message_of(29);
    const std::uint64_t code = siphash(reference, message);
    for (unsigned bit = 0; bit < 128; ++bit) {
        Secret other = reference;
        other[bit / 64] ^= std::uint64_t{1} << bit % 64;
        EXPECT_NE(siphash(other, message), code) << bit;
    }
    for (std::size_t bit = 0; bit < 8 * message.size(); ++bit) {
        auto other = message;
        other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_NE(siphash(reference, other), code) << bit;
    }
}

}  // namespace
}  // namespace atp
