// SPDX-License-Identifier: Apache-2.0
// Results of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/counters.h"
#include "sim/scenario.h"
#include "switchml/switch.h"

namespace atp::sim {

// Results of a SwitchML job.
struct SwitchmlReport {
    std::uint32_t slots = 0;     // the job's part of the pool
    SwitchmlCounters workers{};  // sum over all workers
    switchml::SwitchCounters at_switch{};
    Duration round_trip{};  // mean time from the first transmission of a packet to its result

    [[nodiscard]] std::uint64_t count(switchml::Event event) const { return at_switch.count(event); }
};

struct JobReport {
    std::uint32_t job = 0;
    std::string system;
    std::string model;  // empty: no model
    unsigned workers = 0;
    unsigned iterations = 0;
    Duration iteration_time{};  // mean; excludes the first iteration if there are several
    double samples_per_s = 0;   // per worker; 0 without a model
    unsigned incarnations = 0;
    Time started{};
    std::optional<Time> finished;
    bool given_up = false;           // a rank left, so the job cannot finish
    std::uint64_t tensor_bytes = 0;  // contributed by each worker, without repetitions in later incarnations
    WorkerCounters worker{};         // sum over workers, channels and incarnations
    ServerCounters server{};
    FlowCounters flows{};  // sum over all flows of the job
    std::optional<SwitchmlReport> switchml;
    std::uint64_t gathered_acks = 0;  // that left in lists, copies not counted
    std::uint64_t ack_lists = 0;
    std::uint64_t failed_ranks = 0;   // ranks that read an error, in all incarnations
    std::uint64_t timed_out = 0;      // operations that reached their deadline
    std::vector<std::string> errors;  // that ranks read, the first eight

    [[nodiscard]] Duration time() const { return finished ? *finished - started : Duration::zero(); }
    // Bits of a worker's own tensor that are summed per second.
    [[nodiscard]] double goodput_bits_per_s() const;
    // Share of all additions that the network made, 0 to 1.
    [[nodiscard]] double share_aggregated() const;
    [[nodiscard]] std::uint64_t fragments() const;  // completed by ATP or SwitchML
    [[nodiscard]] std::uint64_t resends() const;    // by ATP or SwitchML workers
};

// Results of a background flow.
struct BackgroundReport {
    std::string name;
    Time started{};
    Time ended{};  // arrival of the last byte
    FlowCounters flows{};

    [[nodiscard]] double goodput_bits_per_s() const;
};

struct SwitchReport {
    std::string name;
    SwitchCounters counters{};
    std::uint32_t occupied = 0;  // aggregators in use at the end
    bool forwards_only = false;
};

struct LinkReport {
    std::string from;
    std::string to;
    LinkCounters counters{};
};

// Counters of each interval of a run. The second index is the interval.
struct Series {
    Duration interval{};
    std::vector<std::vector<std::uint64_t>> job_bytes;             // bytes of sums per worker (mean), by job
    std::vector<std::vector<std::uint64_t>> job_added_in_network;  // packets that switches added, by job
    std::vector<std::vector<std::uint64_t>> job_added_at_server;   // packets that the server added, by job
    std::vector<std::vector<std::uint64_t>> background_bytes;      // delivered bytes, by flow
    std::vector<std::vector<std::uint64_t>> link_bytes;            // bytes carried, by link
};

struct Report {
    std::uint64_t seed = 0;
    std::string topology;
    bool complete = false;     // every operation of every job completed
    bool interrupted = false;  // the caller set RunOptions::stop
    Time ended{};              // virtual time
    std::uint64_t packet_hops = 0;
    std::uint64_t events = 0;
    std::vector<JobReport> jobs;
    std::vector<BackgroundReport> background;
    std::optional<Series> series;
    std::vector<SwitchReport> switches;
    std::vector<LinkReport> links;
    std::vector<std::string> failures;  // violated checks: wrong sums, audit failures, unfinished operations, leaks

    [[nodiscard]] bool passed() const { return failures.empty() && complete; }
    [[nodiscard]] std::uint64_t audit_failures() const;
};

// One JSON object. It depends on the scenario only and contains no wall-clock time.
[[nodiscard]] std::string to_json(const Report& report);
// Several lines of text for users.
[[nodiscard]] std::string to_text(const Report& report);

}  // namespace atp::sim
