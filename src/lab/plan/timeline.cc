// SPDX-License-Identifier: Apache-2.0
#include "plan/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atp::plan {
namespace {

// Minimum number of iterations of each job. If the iterations of jobs have different lengths, they overlap differently
// each time; the mean of their lengths converges soon.
constexpr unsigned iterations_required = 12;
constexpr unsigned no_last_iteration = std::numeric_limits<unsigned>::max();

Duration time_for(double bytes, double bytes_per_s) {
    return Duration(std::max<std::int64_t>(std::llround(std::ceil(bytes / bytes_per_s * 1e9)), 1));
}

}  // namespace

void Timeline::add(const workload::Workload& workload, Duration latency, bool whole_buckets) {
    jobs_.push_back({.workload = &workload,
                     .latency = latency,
                     .whole_buckets = whole_buckets,
                     .training = workload::Training(workload, 1, no_last_iteration),
                     .waiting = {},
                     .sums = {},
                     .limited = {}});
}

std::vector<Course> Timeline::run(const Rates& rates, std::size_t resources) {
    active_.assign(jobs_.size(), false);
    for (Job& job : jobs_) {
        job.limited.assign(resources, Duration::zero());
        job.training.begin(0, 0, now_);
    }
    while (!enough()) {
        share(rates);
        pass(next_event());
        for (Job& job : jobs_) handle(job);
    }
    std::vector<Course> courses;
    for (const Job& job : jobs_) {
        const auto done = static_cast<std::int64_t>(job.training.iterations_done(0));
        Course course{.iteration = (job.training.last_end() - job.training.first_end()) / (done - 1),
                      .limited = job.limited};
        for (Duration& time : course.limited) time /= done;
        courses.push_back(std::move(course));
    }
    return courses;
}

bool Timeline::enough() const {
    return std::ranges::all_of(jobs_,
                               [](const Job& job) { return job.training.iterations_done(0) > iterations_required; });
}

void Timeline::share(const Rates& rates) {
    std::vector<bool> active;
    for (const Job& job : jobs_) active.push_back(!job.waiting.empty());
    if (active == active_) return;
    active_ = std::move(active);
    shares_ = rates(active_);
}

Time Timeline::next_event() const {
    Time next = never;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
        const Job& job = jobs_[i];
        next = std::min(next, job.training.due(0));
        if (!job.sums.empty()) next = std::min(next, job.sums.front().at);
        if (active_[i]) next = std::min(next, now_ + time_for(job.left, shares_[i].rate));
    }
    return next;
}

void Timeline::pass(Time until) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
        if (!active_[i]) continue;
        jobs_[i].left -= to_seconds(until - now_) * shares_[i].rate;
        jobs_[i].limited[shares_[i].limit] += until - now_;
    }
    now_ = until;
}

void Timeline::handle(Job& job) {
    constexpr double nothing = 1e-3;  // bytes
    if (!job.waiting.empty() && job.left <= nothing) {
        const Duration again = job.whole_buckets ? now_ - job.begun : Duration::zero();
        job.sums.push_back({.at = now_ + job.latency + again, .bucket = job.waiting.front()});
        job.waiting.pop_front();
        if (!job.waiting.empty()) begin_transfer(job);
    }
    for (; !job.sums.empty() && job.sums.front().at <= now_; job.sums.pop_front()) {
        job.training.summed(0, job.sums.front().bucket, now_);
    }
    while (job.training.due(0) <= now_) hand_over(job, job.training.advance(0, now_));
}

void Timeline::hand_over(Job& job, workload::Training::Buckets buckets) {
    const bool idle = job.waiting.empty();
    for (std::uint32_t bucket = buckets.first; bucket < buckets.last; ++bucket) job.waiting.push_back(bucket);
    if (idle && !job.waiting.empty()) begin_transfer(job);
}

void Timeline::begin_transfer(Job& job) const {
    job.left = static_cast<double>(job.workload->buckets[job.waiting.front()].elements * sizeof(float));
    job.begun = now_;
}

}  // namespace atp::plan
