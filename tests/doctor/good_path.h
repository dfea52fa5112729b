// SPDX-License-Identifier: Apache-2.0
// Facts of a path without faults, for tests of checks.
#pragma once

#include <algorithm>
#include <vector>

#include "doctor/path_checks.h"

namespace atp::doctor {

inline constexpr const char* software = "atp 1.2.3";

inline PathFacts good_path() {
    PathFacts facts;
    facts.address = wire::Address::loopback(wire::Family::ipv4, 4790);
    facts.welcome.software = software;
    facts.welcome.path = {{.id = 1, .aggregators = 40'000, .lanes = 352}};
    facts.round_trips.assign(20, std::chrono::microseconds(30));
    facts.report.emplace().shards.resize(1);
    facts.report->shards[0].udp.received_packets = 1'000'000;
    facts.interface_payload_bytes = facts.found_payload_bytes = 1472;
    facts.reads_marks = true;
    facts.short_packets = TrainReport{.bytes = 64, .sent = 1000, .answered = 1000, .marks = {0, 0, 1000, 0}};
    facts.long_packets = TrainReport{.bytes = 1472, .sent = 200, .answered = 200, .marks = {0, 0, 200, 0}};
    return facts;
}

// The first finding with this status.
inline Finding only(const std::vector<Finding>& findings, Status status) {
    const auto found = std::ranges::find(findings, status, &Finding::status);
    return found == findings.end() ? Finding{} : *found;
}

}  // namespace atp::doctor
