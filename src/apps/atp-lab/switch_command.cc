// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/switch_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "apps/atp/switch_command.h"
#include "apps/common/flags.h"
#include "base/units.h"
#include "emulation/emulated_transport.h"
#include "switchml/stream_pool.h"

namespace atp::apps {
namespace {

enum class Serves : std::uint8_t { atp, switchml, both };

struct SwitchExperiments {
    Serves serves = Serves::atp;
    emulation::PortConfig port;
    emulation::EmulatedTransportConfig transport;
};

// Flags of emulated ports, which need a switch in user space: packets that the kernel aggregates do not pass these
// ports.
constexpr std::array port_flags = {"--port-rate", "--queue", "--ecn", "--loss", "--lossy-ports", "--seed"};

std::optional<Serves> parse_serves(std::string_view text) {
    if (text == "atp") return Serves::atp;
    if (text == "switchml") return Serves::switchml;
    if (text == "both") return Serves::both;
    return std::nullopt;
}

void add_switch_flags(CLI::App& command, SwitchExperiments& experiments) {
    Flags protocols(command, "Experiments");
    protocols.parsed("--protocol", experiments.serves, "NAME", parse_serves, "atp, switchml or both",
                     "Serve jobs of these protocols [atp]");
    Flags flags(command, "Emulated ports (a link between the switch and each of its neighbours)");
    flags.parsed("--port-rate", experiments.port.rate_bits_per_s, "RATE", parse_rate, rate_forms,
                 "Rate of each direction [no limit]");
    flags.parsed("--queue", experiments.port.queue_bytes, "SIZE", parse_size, size_forms,
                 "Most bytes that wait for a port; further packets are dropped [no limit]");
    flags.parsed("--ecn", experiments.port.ecn_bytes, "SIZE", parse_size, size_forms,
                 "Mark packets that find more than this waiting [never]");
    flags.parsed("--loss", experiments.port.loss, "SHARE", parse_percent, percent_forms,
                 "Share of packets lost in each direction [0]");
    flags.number("--lossy-ports", experiments.transport.ports.lossy_peers, 0, UINT64_MAX,
                 "Number of neighbours that lose packets: those that send first [all]");
    flags.number("--seed", experiments.transport.ports.seed, 0, UINT64_MAX, "Seed of the losses [1]");
}

void serve_switchml(switchd::SwitchNodeConfig& config, Serves serves) {
    config.other_bytes = config.memory_bytes;
    config.serves_atp = serves == Serves::both;
    if (!config.serves_atp) config.memory_bytes = 0;
    config.slots = switchml::slots_in(config.other_bytes / config.shards, config.lanes);
    config.open_protocol = [slots = config.slots, lanes = config.lanes](std::uint32_t) {
        return std::make_unique<switchml::StreamPool>(switchml::SwitchConfig{.slots = slots, .lanes = lanes});
    };
}

std::optional<std::string> complete_switch(SwitchExperiments& experiments, switchd::SwitchNodeConfig& config,
                                           bool in_kernel, const Given& given) {
    const auto* const given_port = std::ranges::find_if(port_flags, given);
    if (in_kernel && given_port != port_flags.end()) {
        return fmt::format(
            "--xdp and {} do not go together: packets that the kernel aggregates do not pass emulated ports",
            *given_port);
    }
    if (in_kernel && experiments.serves != Serves::atp) {
        return "--xdp and --protocol switchml do not go together: the kernel aggregates packets of ATP alone";
    }
    if (experiments.serves != Serves::atp) serve_switchml(config, experiments.serves);
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
    if (config.slots != 0) {
        text += fmt::format("  slots        {} of {} lanes on each of {} threads for SwitchML ({:.1f} MB)\n",
                            config.slots, config.lanes, config.shards, static_cast<double>(config.other_bytes) / 1e6);
    }
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
        {.add_flags = [experiments](CLI::App& command) { add_switch_flags(command, *experiments); },
         .complete = [experiments](
                         switchd::SwitchNodeConfig& config, bool in_kernel,
                         const Given& given) { return complete_switch(*experiments, config, in_kernel, given); },
         .describe =
             [experiments](const switchd::SwitchNodeConfig& config) { return describe_switch(*experiments, config); }});
}

}  // namespace atp::apps
