// SPDX-License-Identifier: Apache-2.0
#include "sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "protocol/decide.h"
#include "sim/trace.h"
#include "wire/job_text.h"

namespace atp::sim {
namespace {

using Json = nlohmann::ordered_json;

template <class Counters, std::size_t count>
Json counters_to_json(const CounterFields<Counters, count>& fields, const Counters& counters) {
    Json json = Json::object();
    for (const auto& field : fields) json[std::string(field.name)] = field.value_of(counters);
    return json;
}

Json to_json(const SwitchmlReport& job) {
    Json at_switch = Json::object();
    for (std::size_t event = 0; event < switchml::event_count; ++event) {
        const auto which = static_cast<switchml::Event>(event);
        at_switch[std::string(to_string(which))] = job.count(which);
    }
    at_switch["overflows"] = job.at_switch.overflows;
    return Json{{"slots", job.slots},
                {"round_trip_us", to_microseconds(job.round_trip)},
                {"worker_counters", counters_to_json(switchml_fields, job.workers)},
                {"switch_counters", std::move(at_switch)}};
}

Json to_json(const JobReport& job) {
    Json json{{"job", wire::job_to_string(job.job)},
              {"system", job.system},
              {"workers", job.workers},
              {"finished", job.finished.has_value()},
              {"given_up", job.given_up},
              {"incarnations", job.incarnations},
              {"started_ms", to_milliseconds(job.started.time_since_epoch())},
              {"time_ms", to_milliseconds(job.time())},
              {"iterations", job.iterations},
              {"iteration_ms", to_milliseconds(job.iteration_time)},
              {"bytes", job.tensor_bytes},
              {"goodput_bits_per_s", job.goodput_bits_per_s()},
              {"share_aggregated", job.share_aggregated()},
              {"resends", job.resends()},
              {"failed_ranks", job.failed_ranks},
              {"timed_out", job.timed_out},
              {"errors", job.errors},
              {"gathered_acks", job.gathered_acks},
              {"ack_lists", job.ack_lists},
              {"server", {{"packets_in", job.server.packets}, {"bytes_in", job.server.bytes}}},
              {"server_counters", counters_to_json(server_fields, job.server)},
              {"worker_counters", counters_to_json(worker_fields, job.worker)},
              {"flow_counters", counters_to_json(flow_fields, job.flows)}};
    if (job.switchml) json["switchml"] = to_json(*job.switchml);
    if (!job.model.empty()) json.update({{"model", job.model}, {"samples_per_s", job.samples_per_s}});
    return json;
}

Json to_json(const BackgroundReport& flow) {
    return Json{{"flow", flow.name},
                {"started_ms", to_milliseconds(flow.started.time_since_epoch())},
                {"ended_ms", to_milliseconds(flow.ended.time_since_epoch())},
                {"goodput_bits_per_s", flow.goodput_bits_per_s()},
                {"flow_counters", counters_to_json(flow_fields, flow.flows)}};
}

Json to_json(const Series& series) {
    return Json{
        {"interval_ms", to_milliseconds(series.interval)},     {"job_bytes", series.job_bytes},
        {"job_added_in_network", series.job_added_in_network}, {"job_added_at_server", series.job_added_at_server},
        {"background_bytes", series.background_bytes},         {"link_bytes", series.link_bytes}};
}

Json to_json(const SwitchReport& at) {
    Json json{{"name", at.name}, {"forwards_only", at.forwards_only}, {"occupied", at.occupied}};
    for (unsigned event = 0; event < ATP_EVENT_COUNT; ++event) {
        json[std::string(event_name(event))] = at.counters.events[event];
    }
    std::uint64_t refused = 0;
    for (const std::uint64_t count : at.counters.refused) refused += count;
    json["forged"] = at.counters.forged;
    json["ecn"] = at.counters.ecn;
    json["overflows"] = at.counters.overflows;
    json["no_room"] = at.counters.no_room;
    json["refused"] = refused;
    return json;
}

std::uint64_t ecn_marks(const Report& report) {
    std::uint64_t marks = 0;
    for (const LinkReport& link : report.links) marks += link.counters.marked;
    return marks;
}

LinkCounters sum_of_links(const Report& report) {
    LinkCounters sum{};
    for (const LinkReport& link : report.links) add_counters(link_fields, link.counters, sum);
    return sum;
}

}  // namespace

double JobReport::goodput_bits_per_s() const {
    const double seconds = static_cast<double>(time().count()) / 1e9;
    return seconds > 0 ? static_cast<double>(tensor_bytes) * 8.0 / seconds : 0;
}

double BackgroundReport::goodput_bits_per_s() const {
    const double seconds = static_cast<double>((ended - started).count()) / 1e9;
    return seconds > 0 ? static_cast<double>(flows.delivered_bytes) * 8.0 / seconds : 0;
}

double JobReport::share_aggregated() const {
    const std::uint64_t additions = fragments() * (workers - 1);
    return additions == 0 ? 0 : 1.0 - static_cast<double>(server.added_here) / static_cast<double>(additions);
}

std::uint64_t JobReport::fragments() const {
    return server.completed + (switchml ? switchml->count(switchml::Event::completed) : 0);
}

std::uint64_t JobReport::resends() const { return worker.resent + (switchml ? switchml->workers.resent : 0); }

std::uint64_t Report::audit_failures() const {
    std::uint64_t failures_seen = 0;
    for (const JobReport& job : jobs) failures_seen += job.server.audit_failures + job.worker.audit_failures;
    return failures_seen;
}

std::string to_json(const Report& report) {
    Json jobs = Json::array();
    for (const JobReport& job : report.jobs) jobs.push_back(to_json(job));
    Json switches = Json::array();
    for (const SwitchReport& at : report.switches) switches.push_back(to_json(at));
    Json links = Json::array();
    for (const LinkReport& link : report.links) {
        Json json{{"from", link.from}, {"to", link.to}};
        json.update(counters_to_json(link_fields, link.counters));
        links.push_back(std::move(json));
    }
    Duration time{};
    for (const JobReport& job : report.jobs) {
        if (job.finished) time = std::max(time, job.finished->time_since_epoch());
    }
    Json json{{"seed", report.seed},
              {"topology", report.topology},
              {"verified", report.passed()},
              {"complete", report.complete},
              {"interrupted", report.interrupted},
              {"audit_failures", report.audit_failures()},
              {"failures", report.failures},
              {"time_ms", to_milliseconds(time)},
              {"packet_hops", report.packet_hops},
              {"events", report.events},
              {"ecn_marks", ecn_marks(report)},
              {"jobs", std::move(jobs)},
              {"switches", std::move(switches)},
              {"links", std::move(links)}};
    if (!report.background.empty()) {
        Json background = Json::array();
        for (const BackgroundReport& flow : report.background) background.push_back(to_json(flow));
        json["background"] = std::move(background);
    }
    if (report.series) json["series"] = to_json(*report.series);
    return json.dump(2);
}

namespace {

std::string jobs_text(const Report& report) {
    std::string text = fmt::format("{:>8} {:>7} {:>5} {:>12} {:>14} {:>10} {:>9} {:>8} {:>7} {:>12} {:>14}\n", "job",
                                   "workers", "inc.", "time", "goodput/worker", "in-network", "resends", "probes",
                                   "floats", "packets->PS", "bytes->PS");
    for (const JobReport& job : report.jobs) {
        const std::string time = job.finished   ? fmt::format("{:.3f} ms", to_milliseconds(job.time()))
                                 : job.given_up ? "given up"
                                                : "unfinished";
        text += fmt::format("{:>8} {:>7} {:>5} {:>12} {:>9.3f} Gb/s {:>8.2f} % {:>9} {:>8} {:>7} {:>12} {:>14}\n",
                            wire::job_to_string(job.job), job.workers, job.incarnations, time,
                            job.goodput_bits_per_s() / 1e9, 100 * job.share_aggregated(), job.resends(),
                            job.worker.probes, job.server.float_fragments, job.server.packets, job.server.bytes);
    }
    return text;
}

std::string training_text(const Report& report) {
    std::string text;
    for (const JobReport& job : report.jobs) {
        if (job.model.empty()) continue;
        text += fmt::format("{:>8} {} by {}: {:.3f} ms an iteration, {:.1f} samples/s at each worker\n",
                            wire::job_to_string(job.job), job.model, job.system, to_milliseconds(job.iteration_time),
                            job.samples_per_s);
    }
    for (const BackgroundReport& flow : report.background) {
        text += fmt::format("background {}: {:.3f} Gb/s, {} resent\n", flow.name, flow.goodput_bits_per_s() / 1e9,
                            flow.flows.resent);
    }
    return text;
}

std::string switchml_text(const Report& report) {
    using switchml::Event;
    std::string text;
    for (const JobReport& job : report.jobs) {
        if (!job.switchml) continue;
        const SwitchmlReport& s = *job.switchml;
        text += fmt::format(
            "{:>8} SwitchML: {} slots, {} packets of {:.1f} us, {} resends; at the switch {} shadow replies, {} "
            "duplicates, {} late\n",
            wire::job_to_string(job.job), s.slots, s.workers.sent, to_microseconds(s.round_trip), s.workers.resent,
            s.count(Event::answered), s.count(Event::duplicate), s.count(Event::late));
    }
    return text;
}

std::string switches_text(const Report& report) {
    constexpr std::size_t shown = 8;
    std::string text =
        fmt::format("\n{:>6} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "switch", "claimed", "added",
                    "completed", "collided", "bypassed", "fetched", "flushed", "released", "occupied");
    for (std::size_t i = 0; i < std::min(shown, report.switches.size()); ++i) {
        const SwitchReport& at = report.switches[i];
        if (at.forwards_only) {
            text += fmt::format("{:>6} only forwards\n", at.name);
            continue;
        }
        const auto& events = at.counters.events;
        text += fmt::format("{:>6} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", at.name,
                            events[ATP_EVENT_CLAIMED] + events[ATP_EVENT_SUPERSEDED] + events[ATP_EVENT_TAKEN_OVER],
                            events[ATP_EVENT_ADDED], events[ATP_EVENT_COMPLETED], events[ATP_EVENT_COLLIDED],
                            events[ATP_EVENT_BYPASSED], events[ATP_EVENT_FETCHED], events[ATP_EVENT_FLUSHED],
                            events[ATP_EVENT_RELEASED], at.occupied);
    }
    if (report.switches.size() > shown) text += fmt::format("   ... and {} more\n", report.switches.size() - shown);
    return text;
}

// All links of a small network, the busiest links of a large one.
std::string links_text(const Report& report) {
    constexpr std::size_t shown = 16;
    std::vector<const LinkReport*> links;
    for (const LinkReport& link : report.links) links.push_back(&link);
    if (links.size() > shown) {
        std::ranges::stable_sort(links, std::greater(), [](const LinkReport* link) { return link->counters.bytes; });
    }
    std::string text = fmt::format("\n{:>14} {:>10} {:>14} {:>8} {:>8} {:>8}\n", "link", "packets", "bytes", "dropped",
                                   "lost", "marked");
    for (std::size_t i = 0; i < std::min(shown, links.size()); ++i) {
        const LinkCounters& c = links[i]->counters;
        text +=
            fmt::format("{:>14} {:>10} {:>14} {:>8} {:>8} {:>8}\n", fmt::format("{}>{}", links[i]->from, links[i]->to),
                        c.packets, c.bytes, c.dropped, c.lost, c.marked);
    }
    const LinkCounters sum = sum_of_links(report);
    return text + fmt::format("{:>14} {:>10} {:>14} {:>8} {:>8} {:>8}\n",
                              links.size() > shown ? fmt::format("all {}", links.size()) : "all", sum.packets,
                              sum.bytes, sum.dropped, sum.lost, sum.marked);
}

}  // namespace

std::string to_text(const Report& report) {
    std::string text = jobs_text(report) + training_text(report) + switchml_text(report) + switches_text(report) +
                       links_text(report) + "\n";
    for (const JobReport& job : report.jobs) {
        for (const std::string& error : job.errors) text += fmt::format("error: {}\n", error);
        if (job.given_up) text += fmt::format("given up: job {}: a rank left\n", wire::job_to_string(job.job));
    }
    for (const std::string& failure : report.failures) text += fmt::format("FAILURE: {}\n", failure);
    if (report.interrupted) return text + "interrupted: every sum until then is verified\n";
    text += report.passed() ? "verified: every bit of every sum is correct, no audit failure\n" : "NOT VERIFIED\n";
    return text;
}

}  // namespace atp::sim
