// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/drain_part.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/common/confinement.h"
#include "client/switch_report.h"

namespace atp::apps {
namespace {

using JsonText = nlohmann::ordered_json;

struct LeftJob {
    std::string name;
    std::string tenant;
    std::uint32_t members = 0;
};

std::map<std::uint32_t, LeftJob> jobs_of(const client::SwitchReport& report) {
    std::map<std::uint32_t, LeftJob> jobs;
    for (const client::ShardReport& shard : report.shards) {
        for (const client::ChannelReport& channel : shard.channels) {
            LeftJob& job = jobs[channel.job];
            if (!channel.job_name.empty()) job.name = channel.job_name;
            if (!channel.tenant.empty()) job.tenant = channel.tenant;
            job.members = std::max(job.members, channel.present);
        }
    }
    return jobs;
}

std::string state_of(const switchd::SwitchNode& node) {
    JsonText jobs = JsonText::array();
    for (const auto& [number, job] : jobs_of(node.snapshot())) {
        jobs.push_back({{"job", fmt::format("{:08x}", number)},
                        {"name", job.name},
                        {"tenant", job.tenant},
                        {"members", job.members}});
    }
    const JsonText state{{"address", to_string(node.address())},
                         {"draining", node.drains()},
                         {"left", node.jobs()},
                         {"jobs", std::move(jobs)}};
    return state.dump() + "\n";
}

}  // namespace

metrics::HttpAnswer DrainPart::answer(const metrics::HttpRequest& request) {
    if (request.path != drain_path) return {.status = 404, .body = "this socket has /drain\n"};
    if (in_path_) {
        return {.status = 409,
                // errors.md, none: it says what to do
                .body = "a switch in the path needs no drain: stop it, and packets pass unaggregated\n"};
    }
    const bool drained = node_.drains();
    if (request.method == "POST") node_.drain(true);
    if (request.method == "DELETE") node_.drain(false);
    if (node_.drains() && !drained) {
        log_.write(observe::LogEvent::drain_began, {{"jobs", std::to_string(node_.jobs())}});
    }
    if (!node_.drains() && drained) log_.write(observe::LogEvent::drain_ended, {{"reason", "the operator undid it"}});
    return {.type = "application/json", .body = state_of(node_), .headers = {{"Cache-Control", "no-store"}}};
}

Result<std::unique_ptr<metrics::HttpServer>> serve_control(const std::string& path, DrainPart& part) {
    const char* const folders = std::getenv("RUNTIME_DIRECTORY");
    const std::string_view given = folders == nullptr ? "" : folders;
    const std::string_view folder = given.substr(0, given.find(':'));
    if (path.empty() && !folder.starts_with('/')) return nullptr;
    return metrics::HttpServer::start_at(
        path.empty() ? fmt::format("{}/control", folder) : path,
        [&part](const auto& request) { return part.answer(request); }, keep_use_of_maps);
}

}  // namespace atp::apps
