// SPDX-License-Identifier: Apache-2.0
// Several jobs in one network: the number of workers and the start time of each.
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

Scenario jobs_of(std::string_view shape, std::vector<unsigned> workers) {
    Scenario s;
    s.topology = topology(shape);
    s.bytes = 100'000;
    s.jobs = static_cast<unsigned>(workers.size());
    s.job_workers = std::move(workers);
    return s;
}

std::uint64_t bytes_from(const Report& report, std::string_view host) {
    std::uint64_t bytes = 0;
    for (const LinkReport& link : report.links) bytes += link.from == host ? link.counters.bytes : 0;
    return bytes;
}

TEST(Jobs, OfDifferentSizesShareTheFirstHosts) {
    const Report report = run_verified(jobs_of("star:6", {5, 2}));
    EXPECT_EQ(report.jobs[0].workers, 5U);
    EXPECT_EQ(report.jobs[1].workers, 2U);
    EXPECT_GT(bytes_from(report, "h1"), 1.9 * static_cast<double>(bytes_from(report, "h2")));
    EXPECT_EQ(bytes_from(report, "h5"), 0U);
}

TEST(Jobs, OfDifferentSizesUseSeparateHostsIfPlacedSo) {
    Scenario s = jobs_of("star:5", {2, 5});
    s.placement = Placement::separate;
    const Report report = run_verified(s);
    EXPECT_GT(bytes_from(report, "h1.4"), 0U);
    EXPECT_EQ(bytes_from(report, "h0.2"), 0U);
}

TEST(Jobs, OfDifferentSizesRunInEveryTopologyAndSystem) {
    for (const char* shape : {"racks:2x3", "dumbbell:2x3", "fig9"}) {
        for (const ServerPlacement server :
             {ServerPlacement::on_switch, ServerPlacement::dedicated, ServerPlacement::colocated}) {
            Scenario s = jobs_of(shape, {1, 5, 3, 4});
            s.server = server;
            s.systems = {System{}, System{}, {.kind = System::Kind::ring}, {.kind = System::Kind::ps_n}};
            run_verified(s);
        }
    }
}

TEST(Jobs, ArriveAtRandomTimesOfTheSeed) {
    constexpr unsigned many = 400;
    Scenario s;
    s.mean_gap = std::chrono::milliseconds(2);
    const double mean_ms = to_milliseconds(s.start_of(many).time_since_epoch()) / many;
    EXPECT_NEAR(mean_ms, 2, 0.3);  // a standard deviation is 0.1
    Scenario other = s;
    other.seed = 2;
    EXPECT_NE(s.start_of(1), other.start_of(1));
    EXPECT_EQ(s.start_of(0), Time{});
}

TEST(Jobs, StartAtLeastTheStaggerApart) {
    Scenario s;
    s.topology = topology("star:2");
    s.jobs = 12;
    s.bytes = 50'000;
    s.mean_gap = std::chrono::microseconds(20);
    s.stagger = std::chrono::microseconds(1);
    const Report report = run_verified(s);
    for (unsigned job = 1; job < s.jobs; ++job) {
        EXPECT_GE(report.jobs[job].started - report.jobs[job - 1].started, s.stagger);
    }
}

TEST(Jobs, ShareOneServerHost) {
    Scenario s = jobs_of("star:3", {3, 2});
    s.server = ServerPlacement::shared;
    for (const System::Kind kind : {System::Kind::atp, System::Kind::ps}) {
        s.systems = {{.kind = kind}};
        const Report report = run_verified(s);
        EXPECT_GT(bytes_from(report, "p0"), 2 * s.bytes);
        EXPECT_EQ(bytes_from(report, "p1"), 0U);
    }
}

TEST(Jobs, WithMoreWorkersThanHostsAreRefused) {
    EXPECT_NE(problem_of(jobs_of("star:4", {5})).value_or("").find("1 to 4"), std::string::npos);
    EXPECT_NE(problem_of(jobs_of("star:4", {0})).value_or("").find("--job-workers 0"), std::string::npos);
    Scenario crash = jobs_of("star:4", {4, 2});
    crash.faults.outages = {{.node = Outage::Node::worker, .job = 1, .index = 2}};
    EXPECT_NE(problem_of(crash).value_or("").find("there are 2"), std::string::npos);
}

}  // namespace
}  // namespace atp::sim
