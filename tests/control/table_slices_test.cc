// SPDX-License-Identifier: Apache-2.0
// How the table of a switch is divided among tenants that have jobs, and when a division takes effect.
#include "control/table_slices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace atp::control {
namespace {

using Sizes = std::vector<std::uint32_t>;

Sizes sizes_of(std::uint32_t aggregators, const std::vector<SliceClaim>& claims, SliceSize size = SliceSize::any) {
    Sizes sizes;
    for (const atp_range& slice : slices_of(aggregators, claims, size)) sizes.push_back(slice.size);
    return sizes;
}

TEST(SlicesOf, WeightsDivideTheTable) {
    EXPECT_EQ(sizes_of(4096, {{.weight = 3}, {.weight = 1}}), (Sizes{3072, 1024}));
    EXPECT_EQ(sizes_of(100, {{}, {}, {}}), (Sizes{33, 33, 34}));
    EXPECT_EQ(sizes_of(4096, {{.weight = 7}}), (Sizes{4096}));
    EXPECT_EQ(sizes_of(0, {{}, {}}), (Sizes{0, 0}));
    EXPECT_TRUE(sizes_of(4096, {}).empty());
}

TEST(SlicesOf, NobodyGetsLessThanItsGuarantee) {
    EXPECT_EQ(sizes_of(1000, {{.least = 500}, {.weight = 4}}), (Sizes{500, 500}));
    EXPECT_EQ(sizes_of(1000, {{.least = 100}, {.weight = 4}}), (Sizes{200, 800})) << "its weight gives it more";
    // The first guarantee leaves so little that the second one counts as well.
    EXPECT_EQ(sizes_of(1000, {{.least = 600}, {.least = 200, .weight = 1}, {.weight = 2}}), (Sizes{600, 200, 200}));
    EXPECT_EQ(sizes_of(1000, {{.least = 600}, {.least = 400}}), (Sizes{600, 400}));
}

TEST(SlicesOf, H103_NoAggregatorIsInTwoSlicesAndNoneIsLeftOver) {
    for (std::uint32_t aggregators : {1U, 7U, 4096U, 44'198U}) {
        for (std::uint32_t tenants = 1; tenants <= 12; ++tenants) {
            std::vector<SliceClaim> claims;
            for (std::uint32_t i = 0; i < tenants; ++i)
                claims.push_back({.least = i % 3 == 0 ? aggregators / 16 : 0, .weight = 1 + i * i});
            std::uint32_t next = 0;
            for (const atp_range& slice : slices_of(aggregators, claims, SliceSize::any)) {
                EXPECT_EQ(slice.base, next);
                next += slice.size;
            }
            EXPECT_EQ(next, aggregators) << tenants;
        }
    }
}

TEST(SlicesOf, APipelineHasPowersOfTwo) {
    EXPECT_EQ(sizes_of(4096, {{.weight = 3}, {.weight = 1}}, SliceSize::power_of_two), (Sizes{2048, 1024}));
    EXPECT_EQ(sizes_of(4096, {{}, {}, {}}, SliceSize::power_of_two), (Sizes{1024, 1024, 1024}));
}

// What TableSlices tells the table.
struct Table final : SlicedTable {
    void set_slice(const JobKey& job, const atp_range& slice, std::uint32_t weight) override {
        slices[job.job] = slice;
        weights[job.job] = weight;
    }
    void end_changes() override { ++ended; }

    std::map<std::uint32_t, atp_range> slices;
    std::map<std::uint32_t, std::uint32_t> weights;
    int ended = 0;
};

class TableSlicesTest : public ::testing::Test {
  protected:
    TableSlicesTest() { set({{.name = "a", .weight = 3}, {.name = "b"}}); }

    void set(std::vector<Tenant> tenants) { slices.set_tenants(std::make_shared<const Tenants>(std::move(tenants))); }
    void add(std::uint32_t job, const std::string& tenant) {
        slices.add({job, 1}, tenant);
        pass({});
    }
    void remove(std::uint32_t job) {
        slices.remove({job, 1}, now);
        pass({});
    }
    void pass(Duration time) {
        for (const Time end = now + time; now < end || slices.poll_timeout() <= now;) {
            now = std::min(std::max(now, slices.poll_timeout()), end);
            slices.handle_timeout(table, now);
        }
    }
    [[nodiscard]] std::uint32_t size(std::uint32_t job) const { return table.slices.at(job).size; }

    TableSlices slices{{.aggregators = 4000}};
    Table table;
    Time now{std::chrono::seconds(100)};
};

TEST_F(TableSlicesTest, OneTenantHasTheWholeTableUntilAnotherComes) {
    add(1, "a");
    EXPECT_EQ(size(1), 4000U);
    EXPECT_EQ(table.weights[1], 3U);
    add(2, "b");
    EXPECT_EQ(size(1), 3000U);
    EXPECT_EQ(size(2), 1000U);
    EXPECT_EQ(table.slices[2].base, 3000U);
    add(3, "b");
    EXPECT_EQ(size(3), 1000U) << "jobs of a tenant share its slice";
    EXPECT_EQ(table.slices[3].base, 3000U);
}

TEST_F(TableSlicesTest, WhatATenantLeavesIsLentASecondLaterAndRecalledAtOnce) {
    add(1, "a");
    add(2, "b");
    pass(std::chrono::seconds(1));
    remove(2);
    pass(std::chrono::milliseconds(900));
    EXPECT_EQ(size(1), 3000U) << "short jobs in turn move nobody";
    add(3, "b");
    remove(3);
    pass(std::chrono::milliseconds(900));
    EXPECT_EQ(size(1), 3000U);
    pass(std::chrono::milliseconds(200));
    EXPECT_EQ(size(1), 4000U);
    pass(std::chrono::seconds(1));
    add(4, "b");
    EXPECT_EQ(size(1), 3000U);
}

TEST_F(TableSlicesTest, H104_AChangeWaitsForTheOneBefore) {
    set({{.name = "a"}, {.name = "b"}, {.name = "c"}});
    add(1, "a");
    add(2, "b");
    EXPECT_EQ(size(1), 2000U);
    EXPECT_EQ(table.ended, 0);
    add(3, "c");
    EXPECT_EQ(size(1), 2000U) << "its older fragments may still use all of the table";
    EXPECT_EQ(size(3), 1334U) << "a job without fragments waits for nothing";
    pass(std::chrono::milliseconds(500));
    EXPECT_EQ(table.ended, 1);
    EXPECT_EQ(size(1), 1333U);
    EXPECT_EQ(size(2), 1333U);
    pass(std::chrono::milliseconds(500));
    EXPECT_EQ(table.ended, 2);
    EXPECT_EQ(slices.poll_timeout(), never);
}

TEST_F(TableSlicesTest, GuaranteesBeyondTheTableShrinkInProportion) {
    set({{.name = "a", .aggregators = 9000}, {.name = "b", .aggregators = 1000}});
    add(1, "a");
    add(2, "b");
    EXPECT_EQ(size(1), 3200U);
    EXPECT_EQ(size(2), 800U);
}

TEST_F(TableSlicesTest, ThreadsDivideTheGuarantee) {
    slices = TableSlices({.aggregators = 1000, .tables = 4});
    set({{.name = "a", .aggregators = 2400}, {.name = "b"}});
    add(1, "a");
    add(2, "b");
    EXPECT_EQ(size(1), 600U);
}

TEST_F(TableSlicesTest, JobsOfARemovedTenantKeepAShare) {
    add(1, "a");
    add(2, "b");
    pass(std::chrono::seconds(1));
    set({{.name = "a", .weight = 1}});
    pass(std::chrono::seconds(1));
    EXPECT_EQ(size(1), 2000U);
    EXPECT_EQ(size(2), 2000U);
    EXPECT_EQ(table.weights[1], 1U);
}

TEST_F(TableSlicesTest, AnOpenSwitchHasNoSlices) {
    slices = TableSlices({.aggregators = 1000});
    slices.set_tenants(nullptr);
    EXPECT_EQ(slices.poll_timeout(), never);
    add(1, "");
    add(2, "");
    remove(2);
    EXPECT_TRUE(table.slices.empty());
    EXPECT_EQ(slices.poll_timeout(), never);
    set({{.name = "a", .weight = 3}});
    add(3, "a");
    EXPECT_EQ(size(1), 250U) << "SIGHUP gave it tenants, of which the job has none";
    EXPECT_EQ(size(3), 750U);
    pass(std::chrono::seconds(1));
    set({});
    pass(std::chrono::seconds(1));
    EXPECT_EQ(size(1), 1000U) << "and opened it again";
    EXPECT_EQ(size(3), 1000U);
}

}  // namespace
}  // namespace atp::control
