// SPDX-License-Identifier: Apache-2.0
#include "net/random.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "system_calls.h"

namespace atp::net {
namespace {

using test::system_calls;

TEST(RandomBits, AreThoseThatTheKernelGives) {
    const test::WithSystemCalls calls;
    system_calls.getrandom_gives = 0x5A;
    EXPECT_EQ(random_bits(), 0x5A5A5A5A5A5A5A5A);
    EXPECT_EQ(random_secret(), (Secret{0x5A5A5A5A5A5A5A5A, 0x5A5A5A5A5A5A5A5A}));
}

TEST(RandomBits, SignalDuringTheCallIsNoFailure) {
    const test::WithSystemCalls calls;
    system_calls.getrandom_gives = 1;
    system_calls.interruptions = 3;
    EXPECT_EQ(random_bits(), 0x0101010101010101);
}

TEST(RandomBits, KernelWithoutAnyEndsTheProcess) {
    const test::WithSystemCalls calls;
    system_calls.getrandom_fails = ENOSYS;
    EXPECT_DEATH(static_cast<void>(random_bits()), "the kernel gives no random bits: getrandom: Function not");
}

}  // namespace
}  // namespace atp::net
