// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/doctor_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/flags.h"
#include "base/units.h"
#include "doctor/check_table.h"
#include "doctor/examination.h"
#include "doctor/host_pairs.h"
#include "doctor/pair_checks.h"
#include "net/clock.h"
#include "net/resolve.h"
#include "store/rendezvous.h"
#include "store/tcp_store.h"
#include "store/tcp_store_server.h"
#include "wire/address.h"

namespace atp::apps {
namespace {

// As in a job without a switch (docs/spec/formation.md#layouts).
constexpr std::uint32_t most_hosts = 32;

using Json = nlohmann::ordered_json;

struct DoctorOptions {
    doctor::Request request;
    // Tests the paths between the hosts of a job, if `listen` is not empty.
    std::uint32_t rank = 0;
    std::uint32_t world = 0;
    std::string rendezvous;
    std::string listen;
    Duration join_timeout = std::chrono::minutes(1);
    bool json = false;
};

// A line of the terminal that names the check in progress.
class FindingLine {
  public:
    void show(std::string_view text) {
        if (!terminal_) return;
        fmt::print(stderr, "\r{} ...\033[K", text);
        std::fflush(stderr);
    }
    void clear() {
        if (!terminal_) return;
        fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
    }

  private:
    bool terminal_ = isatty(STDERR_FILENO) != 0;
};

void print_finding(const doctor::Finding& finding) {
    const std::string_view status =
        finding.status == doctor::Status::fail ? std::string_view("FAIL") : doctor::to_string(finding.status);
    fmt::print("{:<5}{}: {}{}{}\n", status, finding.name, finding.found, finding.fix.empty() ? "" : "; ", finding.fix);
    std::fflush(stdout);
}

void print_json(const std::vector<doctor::Finding>& findings) {
    // doctor.md, passed: true if no check failed
    // doctor.md, checks: a list with an object for each check
    Json checks = Json::array();
    for (const doctor::Finding& finding : findings) {
        // doctor.md, checks[].name: the check; on a path, with the address: `round trip 10.0.0.1:4790`
        // doctor.md, checks[].status: `ok`, `warn` or `fail`
        // doctor.md, checks[].found: what was found
        // doctor.md, checks[].fix: what you should do, or an empty text
        checks.push_back({{"name", finding.name},
                          {"status", doctor::to_string(finding.status)},
                          {"found", finding.found},
                          {"fix", finding.fix}});
    }
    fmt::print("{}\n", Json({{"passed", doctor::passed(findings)}, {"checks", checks}}).dump());
}

void print_summary(const std::vector<doctor::Finding>& findings) {
    const auto count = [&](doctor::Status status) {
        return std::ranges::count(findings, status, &doctor::Finding::status);
    };
    fmt::print("{} checks: {} failed, {} warnings\n", findings.size(), count(doctor::Status::fail),
               count(doctor::Status::warn));
}

constexpr Duration store_grace = std::chrono::seconds(5);

Result<std::vector<doctor::Finding>> findings_about_pairs(const DoctorOptions& options) {
    const auto addresses = net::resolve(options.rendezvous);
    if (!addresses) return tl::unexpected(addresses.error());
    std::unique_ptr<store::TcpStoreServer> server;
    if (options.rank == 0) {
        auto started = store::TcpStoreServer::start(addresses->front());
        if (!started) return tl::unexpected(started.error());
        server = *std::move(started);
    }
    const Time deadline = net::after(net::now(), options.join_timeout);
    std::vector<doctor::Finding> findings;
    {
        const auto store = store::TcpStore::connect(addresses->front(), deadline, {});
        if (!store) return tl::unexpected(store.error());
        store::Rendezvous rendezvous(**store, {.prefix = "doctor", .rank = options.rank, .world = options.world});
        const auto facts = doctor::measure_pairs(rendezvous, options.listen, options.request.timeout, deadline);
        if (!facts) return tl::unexpected(facts.error());
        findings = doctor::check_pairs(*facts);
    }
    if (server != nullptr) static_cast<void>(server->wait_deserted(net::now() + store_grace));
    return findings;
}

void examine_pairs(const DoctorOptions& options, const std::function<void(const doctor::Finding&)>& notify) {
    const auto findings = findings_about_pairs(options);
    if (!findings) {
        return notify({.status = doctor::Status::fail,
                       .name = name_of(doctor::CheckName::pairs),
                       .found = to_string(findings.error()),
                       .fix = "start `atp doctor` on all hosts within a minute"});
    }
    for (const doctor::Finding& finding : *findings) notify(finding);
}

int run_doctor(const DoctorOptions& options) {
    FindingLine progress;
    std::vector<doctor::Finding> findings;
    const auto notify = [&](const doctor::Finding& finding) {
        findings.push_back(finding);
        progress.clear();
        if (!options.json) print_finding(finding);
    };
    doctor::examine(
        options.request, [&](std::string_view text) { progress.show(text); }, notify);
    if (!options.listen.empty()) {
        progress.show("paths between the hosts");
        examine_pairs(options, notify);
    }
    progress.clear();
    options.json ? print_json(findings) : print_summary(findings);
    return doctor::passed(findings) ? exit_passed : exit_failed;
}

std::optional<std::string> parse_host_port(std::string_view text) {
    const auto parts = wire::split_host_port(text);
    return parts && parts->port != 0 ? std::optional<std::string>(text) : std::nullopt;
}

}  // namespace

std::function<int()> register_doctor(CLI::App& program) {
    auto options = std::make_shared<DoctorOptions>();
    Command& command =
        Command::add(program, "doctor",
                     "Find common faults of this host and of the paths to switches, and print how to correct them");
    Flags flags(command, "Checks");
    flags.appended("--switch", options->request.switches, "ADDRESS", parse_host_port, address_forms,
                   "Check this switch and the path to it");
    flags.appended("--peer", options->request.peers, "ADDRESS", parse_host_port, address_forms,
                   "Check the TCP rendezvous address of rank 0");
    flags.parsed("--timeout", options->request.timeout, "TIME", parse_wait, wait_forms,
                 "Longest wait for one answer [2s]");
    flags.flag("--json", options->json, "Print one JSON object");
    Flags pairs(command, "Paths between the hosts of a job without a switch (run on all of them at once)");
    CLI::Option* const rank = pairs.number("--rank", options->rank, 0, most_hosts - 1, "Rank of this host");
    CLI::Option* const world = pairs.number("--world", options->world, 2, most_hosts, "Number of hosts");
    CLI::Option* const rendezvous = pairs.parsed("--rendezvous", options->rendezvous, "ADDRESS", parse_host_port,
                                                 address_forms, "TCP address that rank 0 serves");
    CLI::Option* const listen =
        pairs.text("--listen", options->listen, "ADDRESS", "host:port, host:0 for any port, or host:first-last",
                   "UDP address that the others ask");
    for (CLI::Option* const option : {rank, world, rendezvous, listen}) {
        option->needs(rank)->needs(world)->needs(rendezvous)->needs(listen);
    }
    command.add_example("atp doctor --switch 10.0.0.1:4790 --peer 10.0.0.2:29500",
                        "Check this host, the path to a switch, and the way to rank 0.");
    command.set_exit({{exit_passed, "no check failed"},
                      {exit_failed, "a check failed or the output failed"},
                      {exit_misused, "bad arguments"}});
    command.parse_complete_callback([options] {
        if (options->world != 0 && options->rank >= options->world) {
            throw CLI::ValidationError(
                fmt::format("--rank {}: ranks begin with 0, and --world is {}", options->rank, options->world));
        }
    });
    return [options] { return run_doctor(*options); };
}

}  // namespace atp::apps
