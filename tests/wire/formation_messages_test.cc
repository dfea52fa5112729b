// SPDX-License-Identifier: Apache-2.0
// What tests/conformance/control.json does not show of the messages in a store: what does not fit is cut or refused.
#include "wire/formation_messages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/control_messages.h"

namespace atp::wire {
namespace {

using testing::encoded;

TEST(FormationMessages, LongerTextsAndListsAreCut) {
    ReachedFacts facts;
    facts.faults.assign(max_faults + 9, {.to = 3, .why = std::string(2 * max_cause_bytes, 'x')});
    const auto read = decode<ReachedFacts>(encoded(facts));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->faults.size(), max_faults);
    EXPECT_EQ(read->faults.back().why.size(), max_cause_bytes);
}

TEST(FormationMessages, BlanksOfANameAreKept) {
    EXPECT_EQ(decode<NetworkFacts>(encoded(NetworkFacts{.rack = " third  rack "}))->rack, " third  rack ");
}

TEST(FormationMessages, TextBeyondItsLimitIsRefused) {
    SharedFacts facts{.problem = std::string(max_cause_bytes, 'x')};
    auto bytes = encoded(facts);
    ASSERT_TRUE(decode<SharedFacts>(bytes));
    bytes[control_prefix_bytes + 1] = std::byte{0xFF};
    bytes.resize(bytes.size() + 200, std::byte{'x'});
    EXPECT_FALSE(decode<SharedFacts>(bytes)) << "a length of 511";
}

TEST(FormationMessages, RateThatIsNoNumberIsRefused) {
    for (const double rate : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
        EXPECT_FALSE(decode<NetworkFacts>(encoded(NetworkFacts{.host_bits_per_s = rate}))) << rate;
        EXPECT_FALSE(decode<NetworkFacts>(encoded(NetworkFacts{.uplink_bits_per_s = rate}))) << rate;
    }
    EXPECT_TRUE(decode<NetworkFacts>(encoded(NetworkFacts{.host_bits_per_s = 25e9})));
}

}  // namespace
}  // namespace atp::wire
