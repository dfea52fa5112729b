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
#include "doctor/examination.h"
#include "wire/address.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorOptions {
    doctor::Request request;
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
    Json checks = Json::array();
    for (const doctor::Finding& finding : findings) {
        checks.push_back({{"name", finding.name},
                          {"status", doctor::to_string(finding.status)},
                          {"found", finding.found},
                          {"mend", finding.fix}});
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

int run_doctor(const DoctorOptions& options) {
    FindingLine progress;
    std::vector<doctor::Finding> findings;
    doctor::examine(
        options.request, [&](std::string_view text) { progress.show(text); },
        [&](const doctor::Finding& finding) {
            findings.push_back(finding);
            progress.clear();
            if (!options.json) print_finding(finding);
        });
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
    CLI::App* command = program.add_subcommand(
        "doctor", "Find common faults of this host and of the paths to switches, and print how to correct them");
    Flags flags(*command, "Examination");
    flags.appended("--switch", options->request.switches, "ADDRESS", parse_host_port, "host:port or [host]:port",
                   "Check this switch and the path to it; may be repeated");
    flags.appended("--peer", options->request.peers, "ADDRESS", parse_host_port, "host:port or [host]:port",
                   "Check the TCP rendezvous address of rank 0; may be repeated");
    flags.parsed("--timeout", options->request.timeout, "TIME", parse_wait, wait_forms,
                 "Longest wait for one answer [2s]");
    flags.flag("--json", options->json, "Print one JSON object");
    return [options] { return run_doctor(*options); };
}

}  // namespace atp::apps
