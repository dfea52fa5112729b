// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "control/channel_key.h"
#include "protocol/virtual_queue.h"

namespace atp::control {

// Whose packets a port with congestion marks compares (protocol/virtual_queue.h): each tenant is a sender, and so is
// each job without one. If they are more than a port tells apart, several share a number.
//
// Ownership: copies what it gets. Calling order: number_of() for each admitted job, again when its tenant changes, then
//   remove(). Threads: none. Failure: none.
class LinkSenders {
  public:
    // `tenant`: empty for a job of an open switch, or whose tenant is not known any more.
    [[nodiscard]] std::uint8_t number_of(const JobKey& job, std::string_view tenant) {
        const auto found = jobs_.find(job);
        if (found != jobs_.end() && found->second.tenant == tenant) return found->second.number;
        remove(job);
        const auto same = std::ranges::find_if(
            jobs_, [&](const auto& each) { return !tenant.empty() && each.second.tenant == tenant; });
        const std::uint8_t number = same == jobs_.end() ? least_used() : same->second.number;
        jobs_[job] = {.tenant = std::string(tenant), .number = number};
        return number;
    }
    void remove(const JobKey& job) { jobs_.erase(job); }

  private:
    struct Known {
        std::string tenant;
        std::uint8_t number;
    };

    [[nodiscard]] std::uint8_t least_used() const {
        std::array<std::size_t, ATP_QUEUE_SENDERS> jobs{};
        for (const auto& [key, known] : jobs_) ++jobs[known.number];
        const auto least = std::ranges::min_element(jobs.begin() + ATP_SENDER_FIRST, jobs.end());
        return static_cast<std::uint8_t>(least - jobs.begin());
    }

    std::map<JobKey, Known> jobs_;
};

}  // namespace atp::control
