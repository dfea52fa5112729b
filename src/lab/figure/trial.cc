// SPDX-License-Identifier: Apache-2.0
#include "figure/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "protocol/switch.h"

namespace atp::figure {
namespace {

using Json = nlohmann::json;

constexpr std::uint16_t lanes_of_frame = 352;       // multiples of eight that fit a frame of 1,500 bytes
constexpr std::uint8_t slots_log2 = 9;              // of a channel with such packets
constexpr std::uint32_t packets_in_flight = 128;    // at most
constexpr std::uint32_t packets_of_a_message = 44;  // that a rank hands to the kernel at once
constexpr std::uint32_t enough_aggregators = 1U << 15U;
constexpr std::uint32_t headers_of_frame = 14 + 20 + 8;  // a token bucket counts neither preamble nor gap
constexpr double payload_share = 1472.0 / 1514;          // of a full frame with UDP over IPv4

double seconds_of(Duration duration) { return to_milliseconds(duration) * 1e-3; }

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
}

// With any fault, also one that no frame meets, links carry single frames, as those of the simulator and of the papers.
// Otherwise up to 64 KiB cross them at once.
std::string fault_of(const sim::Scenario& network) {
    if (network.faults.loss == 0) return "drop>1500@hosts";
    const auto& lossy = network.faults.lossy_worker;
    return fmt::format("loss={:.9f}@{}", network.faults.loss, lossy ? fmt::format("host{}", *lossy) : "hosts");
}

// Of a scenario: racks with hosts for its jobs. If jobs share no hosts, each rack has those of one job after those of
// the other.
class Hosts {
  public:
    explicit Hosts(const sim::Scenario& network)
        : network_(network),
          racks_(network.topology.shape == sim::TopologySpec::Shape::racks),
          rack_size_(racks_ ? network.topology.second : network.workers()) {}

    [[nodiscard]] sim::TopologySpec topology() const {
        sim::TopologySpec topology = network_.topology;
        if (apart()) (racks_ ? topology.second : topology.first) = begin_of(network_.jobs);
        return topology;
    }
    // Does every job have a rank on every host?
    [[nodiscard]] bool all() const { return !apart() && network_.job_workers.empty(); }
    // As --job-hosts has them.
    [[nodiscard]] std::string of(unsigned job) const {
        std::vector<unsigned> hosts;
        const unsigned width = apart() ? begin_of(network_.jobs) : rack_size_;
        for (unsigned rank = 0; rank < network_.workers_of(job); ++rank) {
            hosts.push_back(rank / rack_size_ * width + begin_of(job) + rank % rack_size_);
        }
        return fmt::format("{}", fmt::join(hosts, ","));
    }

  private:
    [[nodiscard]] bool apart() const { return network_.placement == sim::Placement::separate; }
    // The place of a job's first host in each rack.
    [[nodiscard]] unsigned begin_of(unsigned job) const {
        unsigned begin = 0;
        for (unsigned k = 0; apart() && k < job; ++k) begin += std::min(rack_size_, network_.workers_of(k));
        return begin;
    }

    const sim::Scenario& network_;
    bool racks_;
    unsigned rack_size_;
};

void append_models(std::vector<std::string>& words, const sim::Scenario& network) {
    append(words, {"--model-scale", fmt::format("{:g}", network.scale)});
    append(words, {"--slowness", fmt::format("{:g}", network.slowness)});
    if (network.batch) append(words, {"--batch", std::to_string(*network.batch)});
    if (network.models.size() == 1) return append(words, {"--model", network.models.front()});
    for (unsigned job = 0; job < network.jobs; ++job) {
        append(words, {fmt::format("--job-flags=--model {}", network.model_of(job))});
    }
}

}  // namespace

sim::Scenario linked(std::string_view topology, std::int64_t rate_bits_per_s) {
    sim::Scenario network;
    network.topology = *sim::parse_topology(topology);
    network.rate_bits_per_s = rate_bits_per_s;
    network.delay = std::chrono::microseconds(50);  // about that of veth, bridge and token bucket
    network.queue_bytes = 1U << 20U;
    network.burst_bytes = 72U << 10U;  // of the token buckets
    network.ecn_bytes = 0;
    network.overhead_bytes = headers_of_frame;
    network.lanes = lanes_of_frame;
    network.audit = false;
    network.window_log2 = slots_log2;
    network.most_packets = packets_in_flight;
    network.train = packets_of_a_message;
    network.aggregators = enough_aggregators;
    network.bytes = 8'000'000;
    network.iterations = 3;
    return network;
}

Trial switchml_trial(sim::Scenario links, const sim::SwitchmlSpec& spec) {
    Trial trial{.network = std::move(links), .systems = {"switchml"}};
    trial.network.systems = {*sim::parse_system("switchml")};
    trial.network.switchml = spec;
    trial.flags = {fmt::format("--rank-flags=--lanes {} --window {} --switchml-timeout {}us", spec.lanes, spec.pool,
                               std::chrono::duration_cast<std::chrono::microseconds>(spec.timeout).count())};
    return trial;
}

sim::Scenario training(std::string_view topology, std::int64_t rate_bits_per_s, std::vector<std::string> models,
                       unsigned batch, std::int64_t testbed_bits_per_s) {
    sim::Scenario network = linked(topology, rate_bits_per_s);
    network.models = std::move(models);
    network.batch = batch;
    const auto slowness = static_cast<double>(testbed_bits_per_s) / static_cast<double>(rate_bits_per_s);
    double longest = 0;  // on links of the test bed
    for (unsigned job = 0; job < network.models.size(); ++job) {
        const workload::Workload workload = network.workload(job);
        const double bits = 8.0 * sizeof(float) * static_cast<double>(workload.elements());
        const double transfer = bits / static_cast<double>(testbed_bits_per_s);
        longest = std::max(longest, seconds_of(workload.compute()) + transfer);
    }
    network.slowness = slowness;
    network.scale = std::ceil(longest * slowness);
    network.iterations = 2;  // the simulator leaves the first one out, and bench/cluster has one more
    return network;
}

double training_speed(const sim::Scenario& network, unsigned job, double seconds) {
    return seconds_of(network.workload(job).compute()) / seconds;
}

double training_speed(const sim::Scenario& network, unsigned job, const sim::Report& report) {
    return training_speed(network, job, seconds_of(report.jobs[job].iteration_time));
}

std::vector<std::string> command_of(const Trial& trial, unsigned rounds, std::uint64_t seed) {
    const sim::Scenario& network = trial.network;
    std::vector<std::string> words{std::string(trial.program), "--json"};
    const Hosts hosts(network);
    append(words, {"--topology", to_string(hosts.topology())});
    append(words, {"--rate", fmt::format("{}bit", network.rate_bits_per_s)});
    append(words, {"--queue", std::to_string(network.queue_bytes)});
    append(words, {"--rounds", std::to_string(rounds)});
    append(words, {"--operations", std::to_string(network.iterations)});
    append(words, {"--systems", fmt::format("{}", fmt::join(trial.systems, ","))});
    if (network.models.empty()) append(words, {"--bytes", std::to_string(network.bytes)});
    if (!network.models.empty()) append_models(words, network);
    if (network.jobs > 1) append(words, {"--jobs", std::to_string(network.jobs)});
    for (unsigned job = 0; !hosts.all() && job < network.jobs; ++job) append(words, {"--job-hosts", hosts.of(job)});
    if (network.aggregators != enough_aggregators) {
        const std::uint64_t memory = network.aggregators * protocol::aggregator_bytes(network.lanes);
        append(words, {"--memory", std::to_string(memory)});
    }
    append(words, {"--fault", fault_of(network), "--fault-seed", std::to_string(seed)});
    words.insert(words.end(), trial.flags.begin(), trial.flags.end());
    return words;
}

Outcome::Outcome(const std::string& printed, unsigned round) : round_(round) {
    try {
        report_ = std::make_shared<const Json>(Json::parse(printed));
    } catch (const Json::exception& error) {
        throw Failed(fmt::format("bench/cluster printed no JSON: {}", error.what()));
    }
}

template <class Value>
Value Outcome::read(const std::string& pointer) const {
    try {
        return report_->at(Json::json_pointer(pointer)).get<Value>();
    } catch (const Json::exception& error) {
        throw Failed(fmt::format("bench/cluster printed no {}: {}", pointer, error.what()));
    }
}

double Outcome::number(const std::string& pointer) const { return read<double>(pointer); }

std::vector<double> Outcome::all_seconds(std::string_view system, std::size_t job) const {
    auto seconds = read<std::vector<double>>(fmt::format("/rounds/{}/{}/seconds/{}", round_, system, job));
    if (seconds.empty()) throw Failed("bench/cluster measured no operation");
    return seconds;
}

double Outcome::goodput_bps(std::string_view system) const {
    return number(fmt::format("/rounds/{}/{}/goodput_bps", round_, system));
}

double Outcome::goodput_bps(std::string_view system, std::size_t job) const {
    return number("/bytes") * 8 / seconds(system, job);
}

double Outcome::share_of_limit(std::string_view system) const {
    return goodput_bps(system) / (number("/rate_bps") * payload_share);
}

double Outcome::seconds(std::string_view system, std::size_t job) const {
    std::vector<double> seconds = all_seconds(system, job);
    std::ranges::sort(seconds);
    const std::size_t middle = seconds.size() / 2;
    return seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
}

double Outcome::mean_seconds(std::string_view system, std::size_t job) const {
    const std::vector<double> seconds = all_seconds(system, job);
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

const Json& Outcome::of_round(std::string_view system, const std::string& path) const {
    const std::string pointer = fmt::format("/rounds/{}/{}/{}", round_, system, path);
    try {
        return report_->at(Json::json_pointer(pointer));
    } catch (const Json::exception& error) {
        throw Failed(fmt::format("bench/cluster printed no {}: {}", pointer, error.what()));
    }
}

namespace {

// Of the rate of a host's link, the mean of all hosts in all operations. Jobs run at once, and a host that has no rank
// of a job counts with zero bytes of it.
double share_of_links(const Outcome& outcome, const Json& system) {
    const Json& traffic = system.at("traffic_of_an_operation");
    if (traffic.is_null()) return 0;  // the system has no links
    const auto seconds = system.at("seconds").get<std::vector<double>>();
    const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
    const auto bytes_of = [&](const char* name) { return traffic.at(name).get<double>(); };
    const double bytes = std::max(bytes_of("host_sent_bytes"), bytes_of("host_received_bytes"));
    return outcome.number("/jobs") * bytes * 8 / mean / outcome.number("/rate_bps");
}

// Processors that are hardly idle say nothing about a system that fills its links: with time left they are woken for
// each packet, and without it they take several at once.
double busiest(const Outcome& outcome) {
    constexpr double full = 0.95;
    double most = 0;
    const Json systems = outcome.report().value("systems", Json::object());
    for (const auto& [name, system] : systems.items()) {
        try {
            if (share_of_links(outcome, system) < full) most = std::max(most, system.at("machine_busy").get<double>());
        } catch (const Json::exception& error) {
            throw Failed(fmt::format("bench/cluster printed too little of {}: {}", name, error.what()));
        }
    }
    return most;
}

}  // namespace

std::vector<Outcome> measured(const Lab& lab, const std::vector<Trial>& trials) {
    std::vector<Outcome> outcomes;
    if (!std::filesystem::exists(trials.front().program)) {
        throw Lacking(fmt::format("{} not found: run this command in the project's folder", trials.front().program));
    }
    for (std::size_t i = 0; i < trials.size(); ++i) {
        lab.progress(static_cast<double>(i) / static_cast<double>(trials.size()));
        const std::vector<std::string> command = command_of(trials[i], lab.runs(), lab.first_seed());
        outcomes.emplace_back(lab.kept_output_of(command), lab.run_index());
        lab.note_busy(busiest(outcomes.back()));
    }
    return outcomes;
}

Outcome measured(const Lab& lab, const Trial& trial) { return std::move(measured(lab, std::vector{trial}).front()); }

Outcome measured_once(const Lab& lab, const std::vector<std::string>& command) {
    return {lab.kept_output_of(command, lab.run_index()), 0};
}

}  // namespace atp::figure
