// SPDX-License-Identifier: Apache-2.0
#include "control/announcement.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace atp::control {
namespace {

using Json = nlohmann::json;

Failure malformed(std::string_view what, std::string peer) {
    return fail(Operation::rendezvous, Reason::mismatched, std::move(peer),
                fmt::format("{} cannot be read: run the same version of atp on all ranks", what));
}

}  // namespace

std::string to_text(const Announcement& announcement) {
    Json path = Json::array();
    for (const wire::PathSwitch& next : announcement.path) {
        path.push_back({{"id", next.id}, {"aggregators", next.aggregators}, {"lanes", next.lanes}});
    }
    return Json{{"path", path},
                {"lanes", announcement.lanes},
                {"terms", announcement.terms},
                {"rack", announcement.rack},
                {"servers", announcement.servers},
                {"hosts_switch", announcement.hosts_switch}}
        .dump();
}

Result<Announcement> announcement_from(std::string_view text, std::uint32_t rank) {
    const std::string peer = fmt::format("rank {}", rank);
    try {
        const Json json = Json::parse(text);
        Announcement announcement{.path = {},
                                  .lanes = json.at("lanes").get<std::uint32_t>(),
                                  .terms = json.at("terms").get<std::string>(),
                                  .rack = json.at("rack").get<std::string>(),
                                  .servers = json.at("servers").get<std::vector<std::string>>(),
                                  .hosts_switch = json.value("hosts_switch", false)};
        for (const Json& next : json.at("path")) {
            announcement.path.push_back({.id = next.at("id").get<std::uint64_t>(),
                                         .aggregators = next.at("aggregators").get<std::uint32_t>(),
                                         .lanes = next.at("lanes").get<std::uint16_t>()});
        }
        if (announcement.path.empty()) return malformed("its path of switches is empty or", peer);
        return announcement;
    } catch (const Json::exception&) {
        return malformed("its announcement", peer);
    }
}

std::string to_text(const Decision& decision) { return Json{{"job", decision.job}, {"token", decision.token}}.dump(); }

Result<Decision> decision_from(std::string_view text) {
    try {
        const Json json = Json::parse(text);
        return Decision{.job = json.at("job").get<std::uint32_t>(), .token = json.at("token").get<std::uint64_t>()};
    } catch (const Json::exception&) {
        return malformed("its decision", "rank 0");
    }
}

}  // namespace atp::control
