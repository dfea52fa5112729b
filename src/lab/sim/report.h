// SPDX-License-Identifier: Apache-2.0
// What a run has shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/counters.h"
#include "sim/scenario.h"
#include "switchml/switch.h"

namespace atp::sim {

// Of a job of SwitchML.
struct SwitchmlReport {
    std::uint32_t slots = 0;     // its part of the pool
    SwitchmlCounters workers{};  // all together
    switchml::SwitchCounters at_switch{};
    Duration round_trip{};  // of a packet, from its first sending to its result, on average

    [[nodiscard]] std::uint64_t count(switchml::Event event) const { return at_switch.count(event); }
};

struct JobReport {
    std::uint32_t job = 0;
    std::string system;
    std::string model;  // empty without one
    unsigned workers = 0;
    unsigned iterations = 0;
    Duration iteration_time{};  // on average, without the first one where there are more
    double samples_per_s = 0;   // of a model, at each worker
    unsigned incarnations = 0;
    Time started{};
    std::optional<Time> finished;
    std::uint64_t tensor_bytes = 0;    // that each worker contributed, repetitions of incarnations left out
    std::uint64_t server_packets = 0;  // into the server
    std::uint64_t server_bytes = 0;    // likewise: UDP payloads
    WorkerCounters worker{};           // of all workers, channels and incarnations
    ServerCounters server{};
    FlowCounters flows{};  // of systems that have them: all together
    std::optional<SwitchmlReport> switchml;
    std::uint64_t timed_out = 0;      // operations
    std::vector<std::string> errors;  // the first few of them, typed and named

    [[nodiscard]] Duration time() const { return finished ? *finished - started : Duration::zero(); }
    // Bits of a worker's own tensor summed each second.
    [[nodiscard]] double goodput_bits_per_s() const;
    // The share of all additions that the network made.
    [[nodiscard]] double share_aggregated() const;
    [[nodiscard]] std::uint64_t fragments() const;  // completed by ATP or SwitchML
    [[nodiscard]] std::uint64_t resends() const;    // of their workers
};

// Of a background flow.
struct BackgroundReport {
    std::string name;
    Time started{};
    Time ended{};  // its last byte came
    FlowCounters flows{};

    [[nodiscard]] double goodput_bits_per_s() const;
};

struct SwitchReport {
    std::string name;
    SwitchCounters counters{};
    std::uint32_t occupied = 0;  // aggregators at the end
    bool forwards_only = false;
};

struct LinkReport {
    std::string from;
    std::string to;
    LinkCounters counters{};
};

// What every job and flow got, and every link carried, in each interval of a run.
struct Series {
    Duration interval{};
    std::vector<std::vector<std::uint64_t>> job_bytes;             // of sums that each worker got, by job
    std::vector<std::vector<std::uint64_t>> job_added_in_network;  // packets that switches added, by job
    std::vector<std::vector<std::uint64_t>> job_added_at_server;   // likewise the server
    std::vector<std::vector<std::uint64_t>> background_bytes;      // delivered, by flow
    std::vector<std::vector<std::uint64_t>> link_bytes;            // by link
};

struct Report {
    std::uint64_t seed = 0;
    std::string topology;
    bool complete = false;     // every operation of every job
    bool interrupted = false;  // by whoever ran it
    Time ended{};              // virtual
    std::uint64_t packet_hops = 0;
    std::uint64_t events = 0;
    std::vector<JobReport> jobs;
    std::vector<BackgroundReport> background;
    std::optional<Series> series;
    std::vector<SwitchReport> switches;
    std::vector<LinkReport> links;
    std::vector<std::string> failures;  // what must not be: wrong sums, audit failures, unfinished operations, leaks

    [[nodiscard]] bool passed() const { return failures.empty() && complete; }
    [[nodiscard]] std::uint64_t audit_failures() const;
};

// One JSON object, a pure function of the scenario: no wall-clock times.
[[nodiscard]] std::string to_json(const Report& report);
// For people; several lines.
[[nodiscard]] std::string to_text(const Report& report);

}  // namespace atp::sim
