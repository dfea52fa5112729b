// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "control/group_range.h"
#include "control/layout.h"
#include "protocol/membership.h"
#include "wire/control.h"

namespace atp::control {

// Options of a job on which all ranks agree, as far as its plan depends on them.
struct JobRules {
    std::uint32_t channels = 1;  // of each share of a layout
    std::uint32_t lanes = 0;     // 0: as many as all paths carry
    std::uint32_t window = 0;    // 0: protocol::usual_window()
    bool audit = false;
    double scale = 1;
    Multicast multicast{};
    std::optional<LayoutKind> layout{};       // nullopt: the fastest one
    bool colocated = false;                   // the processes of the ranks have the parameter servers, in turn
    std::vector<wire::Endpoint> dedicated{};  // parameter servers of their own
    bool gathers = true;                      // as many channels again, for all-gathers
};

// Draws of rank 0.
struct JobName {
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint32_t first_group = 0;  // of its channels
};

// How one worker takes part in one channel.
struct PlannedChannel {
    wire::ChannelTerms terms;
    wire::JoiningUnit unit;
    std::uint8_t level = 0;  // of the switch at which it joins
    protocol::Place place;
    std::shared_ptr<const protocol::Membership> membership;
    wire::Endpoint join_at{};                    // family 0: the switch that the worker names
    std::optional<std::uint16_t> switch_rank{};  // worker whose process runs that switch
    std::optional<std::uint16_t> root_rank{};    // worker whose process runs the switch above that one
    std::optional<std::uint16_t> server_rank{};  // worker whose process runs the parameter server
    std::uint32_t window = 0;                    // most packets in flight
    std::uint32_t channels = 1;                  // of the job that are in use at a time: they share the first window
    std::uint32_t bypass_above = 0;              // larger numbers pass the switches: no sum leaves 32 bits
    std::optional<Duration> min_timeout{};       // of a worker; nullopt: the usual one
    std::uint32_t thread = 0;                    // that serves the channel
};

// From what the workers of a job say, the plan of each: where sums are added, who hosts which server or switch, the
// place of each worker, and the terms of each channel. A worker is a rank, or the rank that speaks for its host. All
// workers compute the same plan from the same facts.
//
// Ownership: a value.
// Calling order: make(); if has_servers(), settle(); then the other functions.
// Threads: none.
// Failure: names the rank that is at fault. `mismatched`: the workers see different trees of switches, which a switch
//   notices within a second: ask the switches again.
class JobPlanner {
  public:
    // `ranks`: of each worker. `facts`: by worker.
    [[nodiscard]] static Result<JobPlanner> make(JobRules rules, JobName name, std::vector<std::uint32_t> ranks,
                                                 std::vector<wire::NetworkFacts> facts);

    // Hosts serve the sums.
    [[nodiscard]] bool has_servers() const { return !layout_.shares.empty(); }
    // Workers that serve, ascending.
    [[nodiscard]] std::vector<std::uint16_t> servers() const;
    // The worker runs a switch for its rack.
    [[nodiscard]] bool leads(std::uint16_t worker) const { return leads_[worker]; }
    // The worker sends to its own switch, in some share.
    [[nodiscard]] bool climbs(std::uint16_t worker) const { return climbs_[worker]; }

    // If some workers do not reach each other, one switch or one server adds for all.
    [[nodiscard]] Result<void> settle(std::vector<wire::ServerFacts> servers, std::vector<wire::ReachedFacts> reached);

    [[nodiscard]] const Layout& layout() const { return layout_; }
    [[nodiscard]] const std::string& text() const { return text_; }  // of the layout, for the log
    [[nodiscard]] std::uint32_t channels() const;
    [[nodiscard]] std::uint32_t sockets() const { return channels() * (rules_.gathers ? 2 : 1); }
    [[nodiscard]] const wire::JobPlan& plan() const { return plan_; }
    // `number`: below sockets().
    [[nodiscard]] PlannedChannel channel(std::uint32_t number, std::uint16_t worker) const;

  private:
    struct Limits {
        std::uint32_t lanes = 0;
        std::uint32_t aggregators = 0;
        std::size_t narrowest = 0;  // the first worker whose path limits the lanes

        void take_lanes(std::size_t worker, std::uint32_t most);
    };

    JobPlanner(JobRules rules, JobName name, std::vector<std::uint32_t> ranks, std::vector<wire::NetworkFacts> facts);
    [[nodiscard]] Result<Layout> choose() const;
    void adopt(Layout layout);
    [[nodiscard]] Failure objection(std::string_view layout) const;
    [[nodiscard]] std::string layout_text() const;
    [[nodiscard]] std::string busiest_text() const;
    [[nodiscard]] Result<void> check(const std::vector<wire::ServerFacts>& servers,
                                     const std::vector<wire::ReachedFacts>& reached) const;
    [[nodiscard]] Result<void> place();
    [[nodiscard]] Limits limits() const;
    [[nodiscard]] wire::JobPlan computed_plan(const Limits& found) const;
    [[nodiscard]] std::uint32_t lanes_of(std::size_t worker) const;
    [[nodiscard]] wire::Endpoint server_of(std::uint32_t number) const;
    void join_in_layout(PlannedChannel& channel, std::size_t share, std::uint16_t worker) const;

    JobRules rules_;
    JobName name_;
    std::vector<std::uint32_t> ranks_;
    std::vector<wire::NetworkFacts> facts_;
    std::vector<LayoutRank> layout_ranks_;
    Layout layout_;
    std::vector<bool> leads_;   // by worker
    std::vector<bool> climbs_;  // by worker
    std::string text_;
    bool one_server_ = false;  // some workers do not reach the others
    std::vector<wire::ServerFacts> servers_;
    std::vector<wire::ReachedFacts> reached_;
    std::vector<std::shared_ptr<const protocol::Membership>> memberships_;  // by share; of one root: one
    wire::JobPlan plan_;
};

}  // namespace atp::control
