// SPDX-License-Identifier: Apache-2.0
#include "joining/network.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace atp::joining {
namespace {

using std::chrono::milliseconds;

const wire::Address left = *wire::Address::parse("10.0.0.1:1000");
const wire::Address right = *wire::Address::parse("10.0.0.2:2000");
constexpr Time start{std::chrono::seconds(1)};

std::vector<std::byte> bytes_of(std::uint8_t value) { return {std::byte{value}}; }

std::vector<Flight> all_of(Network& network) {
    std::vector<Flight> flights;
    while (network.next() != never) flights.push_back(network.take());
    return flights;
}

TEST(JoinNetwork, PacketArrivesOnceWithinTheLongestDelay) {
    Network network({.longest_delay = milliseconds(5)});
    network.send(bytes_of(7), left, right, start);
    const auto flights = all_of(network);
    ASSERT_EQ(flights.size(), 1U);
    EXPECT_EQ(flights[0].bytes, bytes_of(7));
    EXPECT_EQ(flights[0].from, left);
    EXPECT_EQ(flights[0].to, right);
    EXPECT_GT(flights[0].arrives, start);
    EXPECT_LE(flights[0].arrives, start + milliseconds(5));
}

TEST(JoinNetwork, LosesRepeatsAndReordersAboutAsOftenAsConfigured) {
    Network network({.loss = 0.2, .duplicates = 0.3, .longest_delay = milliseconds(5)});
    for (int i = 0; i < 1000; ++i) network.send(bytes_of(static_cast<std::uint8_t>(i)), left, right, start);
    const auto flights = all_of(network);
    EXPECT_NEAR(static_cast<double>(flights.size()), 1000 * 0.8 * 1.3, 60);
    EXPECT_FALSE(std::ranges::is_sorted(flights, {}, [](const Flight& flight) { return flight.bytes; }));
    EXPECT_TRUE(std::ranges::is_sorted(flights, {}, &Flight::arrives));
}

TEST(JoinNetwork, CutStopsOneDirectionUntilItHeals) {
    Network network({.longest_delay = milliseconds(5)});
    network.cut(left, right);
    network.send(bytes_of(1), left.with_port(9), right, start);
    network.send(bytes_of(2), right, left, start);
    auto flights = all_of(network);
    ASSERT_EQ(flights.size(), 1U);
    EXPECT_EQ(flights[0].bytes, bytes_of(2));
    network.heal();
    network.send(bytes_of(1), left, right, start);
    EXPECT_EQ(all_of(network).size(), 1U);
}

TEST(JoinNetwork, ReportQuotesThePacketAndIsLimitedToOneEachSecond) {
    Network network({.longest_delay = milliseconds(5), .limits_reports = true});
    const Flight flight{.bytes = std::vector<std::byte>(100, std::byte{3}), .from = left, .to = right};
    network.report(flight, start);
    network.report(flight, start + milliseconds(999));
    network.report(flight, start + milliseconds(1000));
    const auto reports = all_of(network);
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_TRUE(reports[0].is_report);
    EXPECT_EQ(reports[0].to, left);
    const wire::SendError error = send_error_of(reports[0]);
    EXPECT_EQ(error.to, right);
    EXPECT_TRUE(error.by_network);
    EXPECT_EQ(error.quote().size(), wire::SendError::most_quoted_bytes);
    EXPECT_EQ(error.quote()[0], std::byte{3});
}

}  // namespace
}  // namespace atp::joining
