// SPDX-License-Identifier: Apache-2.0
#include "control/path_mtu_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace atp::control {
namespace {

struct Searched {
    std::uint32_t found = 0;
    int probes = 0;
};

// `arrives(bytes, n)` simulates the path: it returns true if the n-th probe of the search arrives.
Searched search(PathMtuSearch machine, const std::function<bool(std::uint32_t, int)>& arrives) {
    Searched searched;
    while (!machine.done() && searched.probes < 1000) {
        const std::uint32_t bytes = machine.probe_bytes();
        ++searched.probes;
        arrives(bytes, searched.probes) ? machine.handle_arrived(bytes) : machine.handle_lost(bytes);
    }
    EXPECT_TRUE(machine.done());
    searched.found = machine.found_bytes();
    return searched;
}

TEST(PathMtuSearch, PathOfTheLargestMtuNeedsOneProbe) {
    const Searched wide = search({1232, 8972}, [](std::uint32_t, int) { return true; });
    EXPECT_EQ(wide.found, 8972U);
    EXPECT_EQ(wide.probes, 1);
}

TEST(PathMtuSearch, FoundSizeIsLessThanOneStepBelowTheLimit) {
    for (std::uint32_t limit = 1232; limit <= 9000; limit += 13) {
        const Searched narrow =
            search({1232, 8972, 8, 1}, [limit](std::uint32_t bytes, int) { return bytes <= limit; });
        EXPECT_LE(narrow.found, limit);
        EXPECT_GT(narrow.found + 8, std::min(limit, 8972U)) << limit;
        EXPECT_LE(narrow.probes, 14) << limit;
    }
}

TEST(PathMtuSearch, ThreeLostProbesOfASizeMakeItALimitAndTwoDoNot) {
    const Searched unlucky = search({1232, 8972}, [](std::uint32_t, int nth) { return nth > 2; });
    EXPECT_EQ(unlucky.found, 8972U);
    const Searched blocked = search({1232, 8972}, [](std::uint32_t bytes, int nth) { return nth > 3 && bytes < 8972; });
    EXPECT_LT(blocked.found, 8972U);
    EXPECT_GE(blocked.found, 8972U - 8);
}

TEST(PathMtuSearch, SearchWithoutAnswersEndsAfterThreeProbesPerBound) {
    const Searched dead = search({1232, 8972}, [](std::uint32_t, int) { return false; });
    EXPECT_EQ(dead.found, 0U);
    EXPECT_EQ(dead.probes, 6) << "three probes of the maximum, then three of the minimum";
    EXPECT_EQ(search({1232, 100}, [](std::uint32_t, int) { return false; }).probes, 3)
        << "minimum and maximum are equal";
}

TEST(PathMtuSearch, LateAnswerRaisesTheFoundSize) {
    PathMtuSearch machine(1232, 8972, 8, 1);
    machine.handle_lost(8972);
    EXPECT_EQ(machine.probe_bytes(), 1232U);
    machine.handle_arrived(8972);
    EXPECT_TRUE(machine.done());
    EXPECT_EQ(machine.found_bytes(), 8972U);
}

TEST(PathMtuSearch, LossBelowAnArrivedSizeIsIgnored) {
    PathMtuSearch machine(1232, 8972, 8, 1);
    machine.handle_lost(8972);
    machine.handle_arrived(1232);
    const std::uint32_t middle = machine.probe_bytes();
    machine.handle_arrived(middle);
    machine.handle_too_long(1232);
    machine.handle_lost(middle);
    EXPECT_GT(machine.probe_bytes(), middle);
    EXPECT_EQ(machine.found_bytes(), middle);
}

TEST(PathMtuSearch, SizeThatTheHostRefusesToSendIsALimitAtOnce) {
    PathMtuSearch machine(1232, 8972);
    machine.handle_too_long(8972);
    EXPECT_EQ(machine.probe_bytes(), 1232U);
}

TEST(PathMtu, PayloadIsTheMtuMinusTheHeaders) {
    EXPECT_EQ(payload_of_mtu(1500, wire::Family::ipv4), 1472U);
    EXPECT_EQ(payload_of_mtu(1500, wire::Family::ipv6), 1452U);
    EXPECT_EQ(payload_of_mtu(65'536, wire::Family::ipv4), 65'507U) << "the longest UDP payload over IPv4";
    EXPECT_EQ(payload_of_mtu(28, wire::Family::ipv4), 0U);
}

}  // namespace
}  // namespace atp::control
