// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/switch_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "apps/atp-lab/assignment_flags.h"
#include "apps/atp/switch_command.h"
#include "apps/common/flags.h"
#include "apps/common/output.h"
#include "apps/common/signals.h"
#include "base/units.h"
#include "emulation/emulated_transport.h"
#include "switchml_net/switch_node.h"

namespace atp::apps {
namespace {

struct SwitchExperiments {
    bool switchml = false;
    policy::Assignment assignment;
    emulation::PortConfig port;
    emulation::EmulatedTransportConfig transport;
};

// Flags of emulated ports, which need a switch in user space: packets that the kernel aggregates do not pass these
// ports.
constexpr std::array port_flags = {"--port-rate", "--queue", "--ecn", "--loss", "--lossy-ports", "--seed"};

// True for SwitchML.
std::optional<bool> parse_served(std::string_view text) {
    if (text == "switchml") return true;
    return text == "atp" ? std::optional(false) : std::nullopt;
}

void add_switch_flags(Command& command, SwitchExperiments& experiments) {
    Flags protocols(command, "Experiments");
    protocols.parsed("--protocol", experiments.switchml, "NAME", parse_served, "atp or switchml",
                     "Serve jobs of this protocol [atp]");
    add_assignment_flags(protocols, experiments.assignment);
    Flags flags(command, "Emulated ports (a link between the switch and each of its neighbours)");
    flags.parsed("--port-rate", experiments.port.rate_bits_per_s, "RATE", parse_rate, rate_forms,
                 "Rate of each direction [no limit]");
    flags.parsed("--queue", experiments.port.queue_bytes, "SIZE", parse_size, size_forms,
                 "Most bytes that wait for a port; further packets are dropped [no limit]");
    flags.parsed("--ecn", experiments.port.ecn_bytes, "SIZE", parse_size, size_forms,
                 "Mark packets that find more than this waiting [never]");
    flags.parsed("--loss", experiments.port.loss, "SHARE", parse_percent, percent_forms,
                 "Share of the packets that each direction loses [0]");
    flags.number("--lossy-ports", experiments.transport.ports.lossy_peers, 0, UINT64_MAX,
                 "Number of neighbours that lose packets: those that send first [all]");
    flags.number("--seed", experiments.transport.ports.seed, 0, UINT64_MAX, "Seed of the losses [1]");
}

// A switch of SwitchML instead of one of ATP.
std::optional<int> run_switchml(const switchd::SwitchNodeConfig& config, bool quiet, bool json) {
    const StopSignals signals;
    const auto node = switchml_net::SwitchNode::start(config, [] { StopSignals::notify(); });
    if (!node) {
        fmt::print(stderr, "atp-lab switch: {}\n", to_string(node.error()));
        return exit_misused;
    }
    if (json) {
        fmt::print("{}\n", to_json((*node)->snapshot()));
    } else if (!quiet) {
        fmt::print("atp-lab switch of SwitchML at {}\n  slots        {} of {} lanes ({:.1f} MB)\n",
                   to_string((*node)->address()), switchml::slots_in(config.memory_bytes, config.lanes), config.lanes,
                   static_cast<double>(config.memory_bytes) / 1e6);
    }
    if (!show_output()) return exit_failed;
    static_cast<void>(signals.wait());
    const auto failure = (*node)->failure();
    (*node)->stop();
    if (failure) fmt::print(stderr, "atp-lab switch: {}\n", to_string(*failure));
    return failure ? exit_failed : exit_passed;
}

std::optional<std::string> complete_switch(SwitchExperiments& experiments, switchd::SwitchNodeConfig& config,
                                           bool in_kernel, const Given& given) {
    const auto* const given_port = std::ranges::find_if(port_flags, given);
    if (in_kernel && given_port != port_flags.end()) {
        return fmt::format(
            "--xdp and --link-rate do not go with {}: what the kernel aggregates or marks does not pass emulated ports",
            *given_port);
    }
    if (in_kernel && experiments.switchml) {
        return "--xdp and --link-rate do not go with --protocol switchml: the kernel knows packets of ATP alone";
    }
    if (experiments.switchml && config.shards != 1) {
        return "--threads and --protocol switchml do not go together: a switch of SwitchML has one thread";
    }
    if (experiments.switchml && (given("--linear") || given("--partition"))) {
        return "--linear and --partition do not go with --protocol switchml: its jobs have pools of their own";
    }
    config.indices = rule_of(experiments.assignment);
    emulation::EmulatedTransportConfig& transport = experiments.transport;
    transport.ports.in = transport.ports.out = experiments.port;
    if (emulates(transport.ports)) {
        config.report_parts = emulation::report_of(transport.ports);
        config.open_transport = [transport](const net::UdpConfig& udp, std::uint32_t shard) {
            emulation::EmulatedTransportConfig own = transport;
            own.number = shard;
            return emulation::EmulatedTransport::open(udp, own);
        };
    }
    return std::nullopt;
}

std::string describe_switch(const SwitchExperiments& experiments, const switchd::SwitchNodeConfig& config) {
    std::string text;
    if (config.open_transport) {
        const emulation::PortConfig& port = experiments.port;
        text += fmt::format("  ports        {} bit/s, queue {} B, marks above {} B, loss {}\n", port.rate_bits_per_s,
                            port.queue_bytes, port.ecn_bytes, port.loss);
    }
    return text;
}

}  // namespace

std::function<int()> register_lab_switch(CLI::App& program) {
    auto experiments = std::make_shared<SwitchExperiments>();
    return add_switch(
        program,
        {.add_flags = [experiments](Command& command) { add_switch_flags(command, *experiments); },
         .complete = [experiments](
                         switchd::SwitchNodeConfig& config, bool in_kernel,
                         const Given& given) { return complete_switch(*experiments, config, in_kernel, given); },
         .run = [experiments](const switchd::SwitchNodeConfig& config, bool quiet, bool json) -> std::optional<int> {
             if (!experiments->switchml) return std::nullopt;
             return run_switchml(config, quiet, json);
         },
         .describe =
             [experiments](const switchd::SwitchNodeConfig& config) { return describe_switch(*experiments, config); }});
}

}  // namespace atp::apps
