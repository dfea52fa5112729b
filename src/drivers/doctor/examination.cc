// SPDX-License-Identifier: Apache-2.0
#include "doctor/examination.h"

#include <fmt/format.h>

#include "base/version.h"
#include "doctor/check_table.h"
#include "doctor/host_checks.h"
#include "doctor/host_facts.h"
#include "doctor/path_checks.h"
#include "doctor/tcp_probe.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::doctor {
namespace {

using Notify = std::function<void(const Finding&)>;

Finding unresolved(CheckName check, const std::string& name, const Error& error) {
    return {.status = Status::fail,
            .name = fmt::format("{} {}", name_of(check), name),
            .found = to_string(error),
            .fix = "correct the name, or make it resolvable on this host (`getent hosts NAME`)"};
}

void examine_switch(const std::string& name, const Request& request, const Progress& progress, const Notify& notify) {
    const auto addresses = net::resolve(name);
    if (!addresses) return notify(unresolved(CheckName::reachability, name, addresses.error()));
    const PathFacts facts = measure_path(addresses->front(), request.timeout, progress);
    for (const Finding& finding : check_path(facts, software_name())) notify(finding);
}

void examine_peer(const std::string& name, const Request& request, const Progress& progress, const Notify& notify) {
    const auto addresses = net::resolve(name);
    if (!addresses) return notify(unresolved(CheckName::peer, name, addresses.error()));
    progress(name + ": connecting");
    notify(check_peer(name, time_to_connect(addresses->front(), net::now() + request.timeout)));
}

}  // namespace

void examine(const Request& request, const Progress& progress, const Notify& found) {
    progress("this host");
    const HostFacts host = read_host();
    for (const Finding& finding : check_host(host)) found(finding);
    for (const std::string& name : request.switches) examine_switch(name, request, progress, found);
    for (const std::string& name : request.peers) examine_peer(name, request, progress, found);
    found(check_kernel_drops(host.drops, read_kernel_drops("/")));
}

}  // namespace atp::doctor
