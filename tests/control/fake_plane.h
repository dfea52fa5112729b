// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "control/data_plane.h"

namespace atp::control {

// Remembers what it was told.
class FakePlane final : public DataPlane {
  public:
    [[nodiscard]] bool admit(const AdmittedJob& job) override {
        if (has_room) held[job.key()] = job;
        return has_room;
    }
    void dismiss(const JobKey& job) override { held.erase(job); }
    void set_key(const JobKey& job, std::uint32_t key_id) override { held.at(job).key_id = key_id; }
    void set_sender(const JobKey& job, std::uint8_t number) override { senders[job] = number; }
    void learn_place(const JobKey& job, const AdmittedPlace& place) override {
        if (held.contains(job)) places.push_back(place);
    }
    void learn_group(const ChannelKey& channel, std::uint64_t group_number) override {
        groups[channel.of_job()] = group_number;
    }
    void set_slice(const JobKey& job, const atp_range& slice, std::uint32_t weight) override {
        EXPECT_TRUE(slices.contains(job) || held.at(job).level == ATP_LEVELS) << "it aggregates without a slice";
        slices[job] = slice;
        weights[job] = weight;
    }
    void end_changes() override { ++ended; }
    [[nodiscard]] std::optional<atp_range> slice_of(const JobKey& job) const override {
        const auto found = slices.find(job);
        return found == slices.end() ? std::nullopt : std::optional(found->second);
    }
    void set_level(const JobKey& job, std::uint8_t level) override { held.at(job).level = level; }
    [[nodiscard]] std::vector<AdmittedJob> jobs() const override {
        std::vector<AdmittedJob> all;
        for (const auto& [key, job] : held) all.push_back(job);
        return all;
    }
    [[nodiscard]] std::optional<protocol::SwitchCounters> packets_of(const JobKey& job) const override {
        return held.contains(job) ? std::optional(packets) : std::nullopt;
    }

    bool has_room = true;
    std::map<JobKey, AdmittedJob> held;
    std::map<JobKey, std::uint64_t> groups;
    std::vector<AdmittedPlace> places;
    std::map<JobKey, atp_range> slices;
    std::map<JobKey, std::uint32_t> weights;
    std::map<JobKey, std::uint8_t> senders;
    int ended = 0;
    protocol::SwitchCounters packets;
};

}  // namespace atp::control
