// SPDX-License-Identifier: Apache-2.0
// Checks of a switch that aggregates in the kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "good_path.h"

namespace atp::doctor {
namespace {

using testing::HasSubstr;

PathFacts path_through_a_kernel() {
    PathFacts facts = good_path();
    facts.welcome.path.front().aggregators = 0;
    client::ShardReport& kernel = facts.report->shards.emplace_back();
    kernel.aggregators = 44'444;
    kernel.kernel = client::KernelReport{.lanes = 352, .interfaces = {{"eth1", "native"}}};
    return facts;
}

client::KernelReport& kernel_in(PathFacts& facts) { return *facts.report->shards.back().kernel; }
Finding check_kernel(const PathFacts& facts) { return check_kernel(facts, *client::kernel_of(*facts.report)); }

client::JobReport job_with(std::uint64_t claimed, std::uint64_t completed, std::uint64_t fetched) {
    client::JobReport job;
    job.counters.events[ATP_EVENT_CLAIMED] = claimed;
    job.counters.events[ATP_EVENT_COMPLETED] = completed;
    job.counters.events[ATP_EVENT_FETCHED] = fetched;
    return job;
}

TEST(KernelChecks, TakeASwitchInsideTheKernelForItsTable) {
    const auto findings = check_path(path_through_a_kernel(), software);
    EXPECT_EQ(only(findings, Status::warn).name, "");
    EXPECT_EQ(only(findings, Status::fail).name, "");
    const auto kernel = std::ranges::find(findings, "inside the kernel 127.0.0.1:4790", &Finding::name);
    ASSERT_NE(kernel, findings.end());
    EXPECT_EQ(kernel->found, "eth1 native, 44444 aggregators of 352 lanes");
}

TEST(KernelChecks, PacketsWithMoreLanesThanTheKernelWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).oversized = 17;
    Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("17 packets with more lanes were forwarded unaggregated"));
    EXPECT_EQ(finding.fix, "start the switch that workers address with --lanes 352");

    kernel_in(facts).interfaces.emplace_back("eth2", "generic");
    EXPECT_THAT(check_kernel(facts).fix, HasSubstr("gso_max_segs 1"));

    facts = path_through_a_kernel();
    facts.found_payload_bytes = 8972;
    finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("the path carries packets of 2224 lanes"));
}

TEST(KernelChecks, InterfaceWithoutItsProgramWarns) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).interfaces.emplace_back("eth2", "gone");
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("no longer attached to eth2"));
    EXPECT_EQ(finding.fix, "restart that switch");
}

TEST(KernelChecks, LongPacketsOfTheLoopbackAreIgnored) {
    PathFacts facts = path_through_a_kernel();
    facts.found_payload_bytes = ATP_MAX_PACKET_BYTES;
    facts.stays_on_this_host = true;
    EXPECT_EQ(check_kernel(facts).status, Status::ok);
    kernel_in(facts).oversized = 1;
    EXPECT_THAT(check_kernel(facts).found, HasSubstr("1 packets with more lanes were forwarded"));
}

TEST(KernelChecks, FragmentsFetchedWithoutCompletionWarn) {
    PathFacts facts = path_through_a_kernel();
    facts.report->shards.back().jobs = {job_with(8524, 0, 8524)};
    facts.report->shards.back().packets = job_with(100'000, 99'000, 500).counters;
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("of 8524 fragments claimed there, 0 were completed and 8524 were fetched"));
    EXPECT_THAT(finding.found, HasSubstr("packets of some workers do not pass its interfaces"));
    EXPECT_THAT(finding.fix, HasSubstr("--xdp"));
    EXPECT_THAT(finding.fix, HasSubstr("--rack"));
}

TEST(KernelChecks, JobsForwardedUnaggregatedWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).passing_jobs = {3, 4};
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found,
                HasSubstr("2 jobs are forwarded unaggregated: packets of some workers do not pass its interfaces"));
    EXPECT_THAT(finding.fix, HasSubstr("--xdp"));
}

TEST(KernelChecks, FewOrCompletedOrUnfetchedFragmentsPass) {
    PathFacts facts = path_through_a_kernel();
    for (const client::JobReport& fine :
         {job_with(999, 0, 999), job_with(10'000, 1'000, 9'000), job_with(10'000, 0, 5'000)}) {
        facts.report->shards.back().jobs = {fine};
        facts.report->shards.back().packets = fine.counters;
        EXPECT_EQ(check_kernel(facts).status, Status::ok) << fine.counters.events[ATP_EVENT_CLAIMED];
    }
}

TEST(KernelChecks, JobsRefusedByAFullKernelTableWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).not_admitted = 12;
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("12 JOINs found no free job"));
    EXPECT_THAT(finding.fix, HasSubstr("--jobs"));
}

TEST(KernelChecks, DamagedPacketsWarn) {
    PathFacts facts = path_through_a_kernel();
    kernel_in(facts).damaged = 3;
    const Finding finding = check_kernel(facts);
    EXPECT_EQ(finding.status, Status::warn);
    EXPECT_THAT(finding.found, HasSubstr("3 packets with a wrong checksum were forwarded unaggregated"));
    EXPECT_THAT(finding.fix, HasSubstr("cable"));
}

}  // namespace
}  // namespace atp::doctor
