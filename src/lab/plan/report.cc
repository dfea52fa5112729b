// SPDX-License-Identifier: Apache-2.0
#include "plan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace atp::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view left_out =
    "Not modelled: loss, slow workers, host time per packet (set the rate that hosts reach), queues of other "
    "traffic,\ntime of a server per packet. Other systems use RDMA and fill an MTU of 1,500 bytes. `atp-lab simulate` "
    "models these.\n";

double times_as_fast(Duration before, Duration after) {
    return static_cast<double>(before.count()) / static_cast<double>(after.count());
}

const std::string& name_of(const Cluster& cluster, std::size_t at) { return cluster.switches[at].name; }

std::string names_of(const Cluster& cluster, const std::vector<std::size_t>& switches) {
    std::string names;
    for (const std::size_t at : switches) names += (names.empty() ? "" : ", ") + name_of(cluster, at);
    return names;
}

std::string describe(const Cluster& cluster, const Bottleneck& bottleneck) {
    const std::string& name = name_of(cluster, bottleneck.at);
    switch (bottleneck.kind) {
        case Bottleneck::Kind::computation: return "computation";
        case Bottleneck::Kind::worker_link: return fmt::format("the links of workers under {}", name);
        case Bottleneck::Kind::uplink: return fmt::format("the uplink of {}", name);
        case Bottleneck::Kind::server_link: return fmt::format("the link of the server under {}", name);
        case Bottleneck::Kind::card: return fmt::format("the network card of {}", name);
        case Bottleneck::Kind::window: return "the window: more channels, or longer packets";
        case Bottleneck::Kind::memory: return fmt::format("the memory of {}", name);
    }
    return {};
}

// ------------------------------------------------------------------------------------------------------------- Tables

// A text table. Columns are as wide as their longest cell. The first column is left-aligned, the others right-aligned.
class Table {
  public:
    explicit Table(std::vector<std::string> head) { add(std::move(head)); }

    void add(std::vector<std::string> row) {
        widths_.resize(std::max(widths_.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
        rows_.push_back(std::move(row));
    }
    // Cells of the last column may be long; they can be left-aligned.
    [[nodiscard]] std::string text(bool last_to_the_left = false) const {
        std::string text;
        for (const std::vector<std::string>& row : rows_) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                const bool last = i + 1 == widths_.size();
                if (last && last_to_the_left) {
                    text += "  " + row[i];
                } else if (i == 0) {
                    text += fmt::format("  {:<{}}", row[i], widths_[i]);
                } else {
                    text += fmt::format("  {:>{}}", row[i], widths_[i]);
                }
            }
            text += '\n';
        }
        return text;
    }

  private:
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> widths_;
};

// Appends the names of all jobs to the column titles.
std::vector<std::string> with_jobs(std::vector<std::string> head, const Cluster& cluster) {
    for (const Job& job : cluster.jobs) head.push_back(job.name);
    return head;
}

std::string iterations_text(const Cluster& cluster, const Plan& plan) {
    std::vector<std::string> head{"job", "workers", "computing"};
    for (const Option& option : plan.options) head.push_back(option.title);
    head.emplace_back("gain");
    Table table(std::move(head));
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
        const JobPlan& job = plan.jobs[i];
        std::vector<std::string> row{cluster.jobs[i].name, fmt::format("{}", cluster.jobs[i].worker_count()),
                                     fmt::format("{:.1f}", to_milliseconds(job.computes))};
        for (const auto& iteration : job.iterations) {
            row.push_back(iteration ? fmt::format("{:.1f}", to_milliseconds(*iteration)) : "-");
        }
        row.push_back(fmt::format("{:.2f}x", job.gain));
        table.add(std::move(row));
    }
    return "Milliseconds of an iteration: with parameter servers, with a ring, and with ATP at these switches.\n"
           "gain: the best of ATP against the best of the others. -: more workers than a switch can serve.\n" +
           table.text();
}

std::string bottlenecks_text(const Cluster& cluster, const Plan& plan) {
    Table table({"job", "sends Gbit/s", "waits", "samples/s", "limited by"});
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
        const JobPlan& job = plan.jobs[i];
        const Duration iteration = job.iterations.back().value_or(plan.without[i]);
        table.add({cluster.jobs[i].name, fmt::format("{:.1f}", job.bytes_per_s * 8 / 1e9),
                   fmt::format("{:.0f} %", 100 * job.waits),
                   fmt::format("{:.1f}", cluster.jobs[i].samples * 1e3 / to_milliseconds(iteration)),
                   describe(cluster, job.bottleneck)});
    }
    return "With all switches. Sends: gradients of a worker, while every job sends; waits: of an iteration, without "
           "computing.\n" +
           table.text(true);
}

std::string purchases_text(const Cluster& cluster, const Plan& plan) {
    Table table(with_jobs({"", "switch"}, cluster));
    for (std::size_t i = 0; i < plan.purchases.size(); ++i) {
        std::vector<std::string> row{fmt::format("{}.", i + 1), names_of(cluster, plan.purchases[i].switches)};
        for (std::size_t job = 0; job < plan.jobs.size(); ++job) {
            row.push_back(fmt::format("{:.2f}x", times_as_fast(plan.without[job], plan.purchases[i].iterations[job])));
        }
        table.add(std::move(row));
    }
    return "Which to buy first: each job with the switches up to that line, against one parameter server. Switches on "
           "one\n"
           "line gain together.\n" +
           table.text();
}

std::string memory_text(const Cluster& cluster, const Plan& plan) {
    std::vector<std::string> head = with_jobs({"switch", "aggregators", "wanted"}, cluster);
    head.emplace_back("find room");
    Table table(std::move(head));
    for (std::size_t at = 0; at < plan.switches.size(); ++at) {
        const SwitchPlan& one = plan.switches[at];
        if (one.requested_at_most == 0) continue;
        std::vector<std::string> row{name_of(cluster, at), fmt::format("{:.0f}", one.aggregators),
                                     fmt::format("{:.0f}", std::ceil(one.requested_at_most))};
        for (const double requested : one.requested) row.push_back(fmt::format("{:.0f}", std::ceil(requested)));
        row.push_back(fmt::format("{:.0f} %", 100 * one.added));
        table.add(std::move(row));
    }
    return "Memory: aggregators that each switch has; that are wanted at most; and, while every job sends, by job, and "
           "the\n"
           "share of the packets that find one.\n" +
           table.text();
}

std::string shortages_text(const Cluster& cluster, const Plan& plan) {
    Table table(with_jobs({"of the wanted"}, cluster));
    for (const Shortage& shortage : plan.shortages) {
        std::vector<std::string> row{fmt::format("{:.0f} %", 100 * shortage.share)};
        for (const Duration iteration : shortage.iterations)
            row.push_back(fmt::format("{:.1f}", to_milliseconds(iteration)));
        table.add(std::move(row));
    }
    return "What a smaller memory costs: milliseconds of an iteration, with that share of it at every switch.\n" +
           table.text();
}

}  // namespace

std::string to_text(const Cluster& cluster, const Plan& plan) {
    return iterations_text(cluster, plan) + '\n' + bottlenecks_text(cluster, plan) + '\n' +
           purchases_text(cluster, plan) + '\n' + memory_text(cluster, plan) + '\n' + shortages_text(cluster, plan) +
           '\n' + std::string(left_out);
}

// --------------------------------------------------------------------------------------------------------------- JSON

namespace {

Json by_job(const Cluster& cluster, const std::vector<Duration>& iterations) {
    Json json = Json::object();
    for (std::size_t i = 0; i < iterations.size(); ++i) json[cluster.jobs[i].name] = to_milliseconds(iterations[i]);
    return json;
}

Json job_json(const Cluster& cluster, const Plan& plan, std::size_t i) {
    const Job& job = cluster.jobs[i];
    const JobPlan& planned = plan.jobs[i];
    Json iterations = Json::object();
    for (std::size_t option = 0; option < plan.options.size(); ++option) {
        const auto& iteration = planned.iterations[option];
        iterations[plan.options[option].key] = iteration ? Json(to_milliseconds(*iteration)) : Json();
    }
    Json bottleneck{{"kind", to_string(planned.bottleneck.kind)}};
    const bool somewhere =
        planned.bottleneck.kind != Bottleneck::Kind::computation && planned.bottleneck.kind != Bottleneck::Kind::window;
    if (somewhere) bottleneck["switch"] = name_of(cluster, planned.bottleneck.at);
    return Json{{"name", job.name},
                {"model", job.model},
                {"workers", job.worker_count()},
                {"gradient_bytes", job.workload.elements() * sizeof(float)},
                {"computes_ms", to_milliseconds(planned.computes)},
                {"iteration_ms", std::move(iterations)},
                {"samples", job.samples},
                {"gain", planned.gain},
                {"waits", planned.waits},
                {"bits_per_s", planned.bytes_per_s * 8},
                {"bottleneck", std::move(bottleneck)}};
}

Json switch_json(const Cluster& cluster, const Plan& plan, std::size_t at) {
    const SwitchPlan& one = plan.switches[at];
    Json requested = Json::object();
    for (std::size_t i = 0; i < one.requested.size(); ++i) requested[cluster.jobs[i].name] = one.requested[i];
    return Json{{"name", name_of(cluster, at)},
                {"aggregators", one.aggregators},
                {"wanted", one.requested_at_most},
                {"wanted_by_job", std::move(requested)},
                {"find_room", one.added}};
}

}  // namespace

std::string to_json(const Cluster& cluster, const Plan& plan) {
    Json json{
        {"jobs", Json::array()}, {"switches", Json::array()}, {"purchases", Json::array()}, {"memory", Json::array()}};
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) json["jobs"].push_back(job_json(cluster, plan, i));
    for (std::size_t at = 0; at < plan.switches.size(); ++at) {
        json["switches"].push_back(switch_json(cluster, plan, at));
    }
    for (const Purchase& purchase : plan.purchases) {
        Json names = Json::array();
        for (const std::size_t at : purchase.switches) names.push_back(name_of(cluster, at));
        json["purchases"].push_back(
            Json{{"switches", std::move(names)}, {"iteration_ms", by_job(cluster, purchase.iterations)}});
    }
    for (const Shortage& shortage : plan.shortages) {
        json["memory"].push_back(
            Json{{"share", shortage.share}, {"iteration_ms", by_job(cluster, shortage.iterations)}});
    }
    return json.dump(2);
}

}  // namespace atp::plan
