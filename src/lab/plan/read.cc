// SPDX-License-Identifier: Apache-2.0
#include "plan/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "base/units.h"
#include "tables/table_reader.h"
#include "wire/format.h"
#include "workload/models.h"

namespace atp::plan {
namespace {

using Problem = tl::unexpected<std::string>;
using tables::TableReader;
using tables::Tables;

constexpr std::string_view name_forms = "a text";
constexpr std::string_view workers_forms =
    "a table of switches with the number of workers under each, such as { leaf1 = 4, leaf2 = 4 }";
constexpr std::string_view server_forms = "\"switch\", \"dedicated\" or \"colocated\"";

std::string read_rate_forms() { return fmt::format("{}, such as \"100Gbps\"", rate_forms); }

tl::expected<std::string, std::string> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text;
    std::array<char, 4096> part{};
    do {
        file.read(part.data(), part.size());
        text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    } while (file);
    if (!file.is_open() || file.bad()) return Problem(fmt::format("{}: {}", path, std::strerror(errno)));
    return text;
}

// ----------------------------------------------------------------------------------------------------------- Switches

struct NamedParent {
    Switch described;
    std::optional<std::string> parent;
};

tl::expected<NamedParent, std::string> read_switch(const toml::table& table, std::string place) {
    TableReader reader(table, std::move(place));
    NamedParent found;
    Switch& one = found.described;
    // Keys for training, which the planner only checks.
    (void)reader.text("address", "\"host:port\"");
    reader.list("hosts", "a list of names, IP addresses and networks");
    reader.list("ranks", "a list of numbers and ranges, such as [0, \"4-7\"]");
    reader.require("name", name_forms);
    one.name = reader.text("name", name_forms).value_or("");
    found.parent = reader.text("parent", "the name of another switch");
    const std::string rates = read_rate_forms();
    reader.require("host_rate", rates);
    one.host_bits_per_s = reader.quantity("host_rate", parse_rate, rates).value_or(0);
    if (found.parent) reader.require("uplink_rate", rates);
    if (reader.has("uplink_rate") && !found.parent) reader.complain("'uplink_rate' needs a 'parent'");
    one.uplink_bits_per_s = reader.quantity("uplink_rate", parse_rate, rates).value_or(0);
    one.card_bits_per_s = reader.quantity("card_rate", parse_rate, rates).value_or(0);
    one.delay = reader.quantity("delay", parse_duration, duration_forms).value_or(one.delay);
    one.queue_bytes = reader.quantity("queue", parse_size, size_forms).value_or(one.queue_bytes);
    one.memory_bytes = reader.quantity("memory", parse_size, size_forms).value_or(one.memory_bytes);
    one.lanes = static_cast<std::uint32_t>(reader.number("lanes", 2, ATP_MAX_LANES).value_or(one.lanes));
    one.aggregates = reader.flag("aggregates", one.aggregates);
    if (auto problem = reader.problem()) return Problem(*std::move(problem));
    return found;
}

std::optional<std::size_t> find_switch(const std::vector<Switch>& switches, std::string_view name) {
    const auto found = std::ranges::find(switches, name, &Switch::name);
    if (found == switches.end()) return std::nullopt;
    return static_cast<std::size_t>(found - switches.begin());
}

std::string names_of(const std::vector<Switch>& switches) {
    std::string names;
    for (const Switch& one : switches) names += (names.empty() ? "" : ", ") + one.name;
    return names;
}

std::optional<std::string> find_root(Cluster& cluster, const std::vector<std::optional<std::string>>& parents) {
    const auto first = std::find(parents.begin(), parents.end(), std::nullopt);
    if (first == parents.end()) return "every switch has a 'parent': leave one switch without it";
    cluster.root = static_cast<std::size_t>(first - parents.begin());
    const auto second = std::find(std::next(first), parents.end(), std::nullopt);
    if (second == parents.end()) return std::nullopt;
    return fmt::format("{} and {} have no 'parent': leave only one switch without it",
                       cluster.switches[cluster.root].name,
                       cluster.switches[static_cast<std::size_t>(second - parents.begin())].name);
}

// Connects switches: one root, and all others directly below it.
std::optional<std::string> connect(Cluster& cluster, const std::vector<std::optional<std::string>>& parents) {
    for (std::size_t at = 0; at < parents.size(); ++at) {
        Switch& one = cluster.switches[at];
        const bool first_of_name = find_switch(cluster.switches, one.name) == at;
        if (!first_of_name) return fmt::format("two switches have the name {}: use each name once", one.name);
        if (!parents[at]) continue;
        one.parent = find_switch(cluster.switches, *parents[at]);
        if (!one.parent) {
            return fmt::format("switch {}: parent = \"{}\" is unknown; use one of {}", one.name, *parents[at],
                               names_of(cluster.switches));
        }
    }
    if (auto problem = find_root(cluster, parents)) return problem;
    for (const Switch& one : cluster.switches) {
        if (!one.parent || *one.parent == cluster.root) continue;
        return fmt::format("switch {}: parent = \"{}\" has a parent itself; use {}: at most two levels aggregate",
                           one.name, cluster.switches[*one.parent].name, cluster.switches[cluster.root].name);
    }
    return std::nullopt;
}

tl::expected<Cluster, std::string> parse_topology(const Document& source) {
    const auto tables = tables::parse_tables(source.text, source.name, "switch");
    if (!tables) return Problem(tables.error());
    Cluster cluster;
    std::vector<std::optional<std::string>> parents;
    for (const toml::node& node : tables->all()) {
        auto one =
            read_switch(*node.as_table(), fmt::format("{}: [[switch]] number {}", source.name, parents.size() + 1));
        if (!one) return Problem(one.error());
        cluster.switches.push_back(std::move(one->described));
        parents.push_back(std::move(one->parent));
    }
    if (auto problem = connect(cluster, parents)) return Problem(fmt::format("{}: {}", source.name, *problem));
    return cluster;
}

// --------------------------------------------------------------------------------------------------------------- Jobs

// A neural network without a table of layers: a number of equal layers.
workload::Model model_of_numbers(std::uint64_t parameters, Duration compute) {
    constexpr std::uint64_t layers = 16;
    workload::Model model{.name = {}, .sample = "batch", .batch = 1, .source = {}, .layers = {}};
    model.samples_per_s = 1e9 / static_cast<double>(compute.count());
    for (std::uint64_t i = 0; i < layers; ++i) {
        model.layers.push_back(
            {.name = {},
             .tensors = {std::max<std::uint64_t>(parameters * (i + 1) / layers - parameters * i / layers, 1)},
             .forward_flops = 1});
    }
    return model;
}

std::optional<workload::Model> read_model(TableReader& reader) {
    constexpr std::uint64_t parameters_max = 1'000'000'000'000;
    const auto name = reader.text("model", workload::model_names());
    const auto batch = reader.number("batch", 1, 1'000'000);
    const auto parameters = reader.number("parameters", 1, parameters_max);
    const auto compute = reader.quantity("compute", parse_wait, wait_forms);
    const bool by_numbers = reader.has("parameters") && reader.has("compute");
    if (reader.has("model") == by_numbers || reader.has("parameters") != reader.has("compute")) {
        reader.complain("a job needs 'model', or 'parameters' and 'compute'");
    }
    if (name && workload::find_model(*name) == nullptr) reader.refuse("model", "one of " + workload::model_names());
    if (batch && !name) reader.complain("'batch' needs 'model': add 'model' or remove 'batch'");
    if (parameters && compute) return model_of_numbers(*parameters, *compute);
    const workload::Model* known = name ? workload::find_model(*name) : nullptr;
    if (known == nullptr) return std::nullopt;
    workload::Model model = *known;
    if (batch) model.batch = static_cast<unsigned>(*batch);
    return model;
}

void read_workers(TableReader& reader, const Cluster& cluster, Job& job) {
    constexpr std::int64_t most = 1024;
    reader.require("workers", workers_forms);
    const toml::table* counts = reader.table("workers", workers_forms);
    job.workers.assign(cluster.switches.size(), 0);
    if (counts == nullptr) return;
    for (const auto& [name, node] : *counts) {
        const auto at = find_switch(cluster.switches, name.str());
        const auto count = node.value_exact<std::int64_t>();
        if (!at) {
            reader.refuse("workers", fmt::format("a number for each of {}", names_of(cluster.switches)));
            return;
        }
        if (!count || *count < 0 || *count > most) {
            reader.refuse("workers", fmt::format("numbers from 0 to {}", most));
            return;
        }
        job.workers[*at] = static_cast<unsigned>(*count);
    }
    if (job.worker_count() < 2 || job.worker_count() > most) {
        reader.refuse("workers", fmt::format("from 2 to {} of them together", most));
    }
}

std::optional<ServerPlacement> parse_server(std::string_view text) {
    if (text == "switch") return ServerPlacement::on_switch;
    if (text == "dedicated") return ServerPlacement::dedicated;
    if (text == "colocated") return ServerPlacement::colocated;
    return std::nullopt;
}

std::optional<bool> parse_hosts(std::string_view text) {
    if (text == "shared") return true;
    if (text == "own") return false;
    return std::nullopt;
}

// Limit of the running time: every plan simulates about a dozen iterations of each bucket.
constexpr std::uint64_t buckets_max = 300'000;

bool too_many_buckets(const workload::Model& model, std::uint64_t bucket_bytes) {
    return model.parameters() / buckets_max > bucket_bytes / sizeof(float);
}

tl::expected<Job, std::string> read_job(const toml::table& table, std::string place, const Cluster& cluster) {
    TableReader reader(table, std::move(place));
    Job job;
    reader.require("name", name_forms);
    job.name = reader.text("name", name_forms).value_or("");
    const auto model = read_model(reader);
    constexpr std::uint64_t bucket_bytes = 4'000'000;
    const auto bucket = reader.quantity("bucket", parse_size, size_forms).value_or(bucket_bytes);
    if (bucket < sizeof(float)) reader.refuse("bucket", "4 bytes or more");
    if (model && too_many_buckets(*model, bucket)) {
        reader.complain(fmt::format("{} parameters are more than {} buckets of {} bytes: use a larger 'bucket'",
                                    model->parameters(), buckets_max, bucket));
    }
    read_workers(reader, cluster, job);
    job.server = reader.quantity("server", parse_server, server_forms).value_or(job.server);
    constexpr unsigned channels_max = 64;
    job.channels = static_cast<unsigned>(reader.number("channels", 1, channels_max).value_or(job.channels));
    job.shares_hosts = reader.quantity("hosts", parse_hosts, "\"own\" or \"shared\"").value_or(job.shares_hosts);
    if (auto problem = reader.problem()) return Problem(*std::move(problem));
    job.model = model->name;
    job.samples = static_cast<double>(model->batch) * job.worker_count();
    job.workload = workload::workload_of(*model, {.bytes = bucket, .least_elements = job.channels});
    return job;
}

std::optional<std::string> read_jobs(const Document& source, Cluster& cluster) {
    const auto tables = tables::parse_tables(source.text, source.name, "job");
    if (!tables) return tables.error();
    for (const toml::node& node : tables->all()) {
        const std::string place = fmt::format("{}: [[job]] number {}", source.name, cluster.jobs.size() + 1);
        auto job = read_job(*node.as_table(), place, cluster);
        if (!job) return job.error();
        if (std::ranges::find(cluster.jobs, job->name, &Job::name) != cluster.jobs.end()) {
            return fmt::format("{}: name = '{}': another job has it", place, job->name);
        }
        cluster.jobs.push_back(*std::move(job));
    }
    return std::nullopt;
}

// ---------------------------------------------------------------------------------------------------------- Together

// An upper bound: all bytes cross the slowest link, and every eight packets take one longest round trip (eight links).
double most_seconds(const Cluster& cluster) {
    double rate = std::numeric_limits<double>::infinity();
    double delay = 0;
    double lanes = ATP_MAX_LANES;
    for (const Switch& one : cluster.switches) {
        for (const std::int64_t bits_per_s : {one.host_bits_per_s, one.uplink_bits_per_s, one.card_bits_per_s}) {
            if (bits_per_s != 0) rate = std::min(rate, static_cast<double>(bits_per_s));
        }
        delay = std::max(delay, std::chrono::duration<double>(one.delay).count());
        lanes = std::min(lanes, static_cast<double>(one.lanes));
    }
    constexpr double headers = 256;  // per packet; more than all headers
    double seconds = 0;
    for (const Job& job : cluster.jobs) {
        const double packets = static_cast<double>(job.workload.elements()) / lanes + 1;
        const double bits = packets * (lanes * sizeof(float) + headers) * 8 * job.worker_count();
        seconds += bits / rate + packets * delay + std::chrono::duration<double>(job.workload.compute()).count();
    }
    return seconds;
}

// An iteration of more than a year indicates a missing unit. Times are nanoseconds in 64 bits, which hold a dozen
// iterations of a year.
std::optional<std::string> find_endless(const Cluster& cluster) {
    constexpr double year = 365.0 * 24 * 3600;
    if (most_seconds(cluster) < year) return std::nullopt;
    return "an iteration would take more than a year: check rates, such as \"100Gbps\", and delays";
}

}  // namespace

tl::expected<Cluster, std::string> parse_cluster(const Document& topology, const Document& jobs) {
    auto cluster = parse_topology(topology);
    if (!cluster) return cluster;
    if (auto problem = read_jobs(jobs, *cluster)) return Problem(*std::move(problem));
    if (auto problem = find_endless(*cluster)) return Problem(fmt::format("{}: {}", topology.name, *problem));
    return cluster;
}

tl::expected<Cluster, std::string> read_cluster(const std::string& topology_path, const std::string& jobs_path) {
    const auto topology = read_file(topology_path);
    if (!topology) return Problem(topology.error());
    const auto jobs = read_file(jobs_path);
    if (!jobs) return Problem(jobs.error());
    return parse_cluster({.name = topology_path, .text = *topology}, {.name = jobs_path, .text = *jobs});
}

}  // namespace atp::plan
