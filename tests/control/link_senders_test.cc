// SPDX-License-Identifier: Apache-2.0
#include "control/link_senders.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace atp::control {
namespace {

constexpr std::uint32_t numbers = ATP_QUEUE_SENDERS - ATP_SENDER_FIRST;

JobKey numbered(std::uint32_t number) { return {number, 0x5EED}; }

TEST(LinkSenders, EachJobWithoutATenantHasANumberOfItsOwnWhileThereAreAny) {
    LinkSenders senders;
    std::set<std::uint8_t> found;
    for (std::uint32_t i = 0; i < numbers; ++i) found.insert(senders.number_of(numbered(i), ""));
    EXPECT_EQ(found.size(), numbers);
    EXPECT_EQ(*found.begin(), ATP_SENDER_FIRST) << "the others are not theirs";
    EXPECT_TRUE(found.contains(senders.number_of(numbered(numbers), ""))) << "shared";
}

TEST(LinkSenders, NumberStaysUntilTheJobEndsAndIsThenUsedAgain) {
    LinkSenders senders;
    const std::uint8_t first = senders.number_of(numbered(1), "");
    EXPECT_NE(senders.number_of(numbered(2), ""), first);
    EXPECT_EQ(senders.number_of(numbered(1), ""), first);
    senders.remove(numbered(1));
    EXPECT_EQ(senders.number_of(numbered(3), ""), first);
}

TEST(LinkSenders, JobsOfATenantShareItsNumber) {
    LinkSenders senders;
    const std::uint8_t vision = senders.number_of(numbered(1), "vision");
    EXPECT_EQ(senders.number_of(numbered(2), "vision"), vision);
    const std::uint8_t speech = senders.number_of(numbered(3), "speech");
    EXPECT_NE(speech, vision);
    EXPECT_EQ(senders.number_of(numbered(2), "speech"), speech) << "it proved another key";
}

}  // namespace
}  // namespace atp::control
