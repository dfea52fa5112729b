// SPDX-License-Identifier: Apache-2.0
#include "control/ticket.h"

#include <gtest/gtest.h>

#include <set>

namespace atp::control {
namespace {

TEST(Ticket, DiffersForEachKeyJobTokenAndChannel) {
    const ChannelKey channel{.job = 1, .token = 2, .channel = 3};
    const std::set<Ticket> tickets{ticket_of({1, 2}, channel), ticket_of({1, 3}, channel),
                                   ticket_of({1, 2}, {.job = 2, .token = 2, .channel = 3}),
                                   ticket_of({1, 2}, {.job = 1, .token = 3, .channel = 3}),
                                   ticket_of({1, 2}, {.job = 1, .token = 2, .channel = 4})};
    EXPECT_EQ(tickets.size(), 5U);
    EXPECT_EQ(*tickets.find(ticket_of({1, 2}, channel)), ticket_of({1, 2}, channel));
    const Ticket ticket = ticket_of({1, 2}, channel);
    EXPECT_FALSE(std::equal(ticket.begin(), ticket.begin() + 8, ticket.begin() + 8)) << "two codes";
}

}  // namespace
}  // namespace atp::control
