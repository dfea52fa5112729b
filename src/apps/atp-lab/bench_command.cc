// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/bench_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/atp/bench_command.h"
#include "apps/common/flags.h"
#include "base/units.h"
#include "policy/experiment.h"
#include "switchml/rank.h"
#include "switchml/stream_pool.h"

namespace atp::apps {
namespace {

constexpr std::array<std::pair<std::string_view, switchml::Mode>, 3> modes{
    {{"offsets", switchml::Mode::compares_offsets},
     {"faithful", switchml::Mode::faithful},
     {"lossless", switchml::Mode::lossless}}};

struct BenchExperiments {
    bool switchml = false;
    switchml::Mode mode = switchml::Mode::compares_offsets;
    Duration resend_after = std::chrono::milliseconds(1);
    bool keep_window = false;
};

// True for SwitchML.
std::optional<bool> parse_protocol(std::string_view text) {
    if (text == "switchml") return true;
    return text == "atp" ? std::optional(false) : std::nullopt;
}

std::optional<switchml::Mode> parse_mode(std::string_view text) {
    const auto* const found = std::ranges::find(modes, text, &decltype(modes)::value_type::first);
    return found == modes.end() ? std::nullopt : std::optional(found->second);
}

std::string text_of(switchml::Mode mode) {
    return std::string(std::ranges::find(modes, mode, &decltype(modes)::value_type::second)->first);
}

void add_bench_flags(CLI::App& command, BenchExperiments& experiments) {
    Flags flags(command, "Experiments");
    CLI::Option* const protocol = flags.parsed("--protocol", experiments.switchml, "NAME", parse_protocol,
                                               "atp or switchml", "Protocol of the packets [atp]");
    flags
        .parsed("--switchml-mode", experiments.mode, "MODE", parse_mode, "lossless, faithful or offsets",
                "Recovery of losses: none, as printed, or by comparing offsets [offsets]")
        ->needs(protocol);
    flags
        .parsed("--switchml-timeout", experiments.resend_after, "TIME", parse_wait, wait_forms,
                "Time without a result after which a worker sends a packet again [1ms]")
        ->needs(protocol);
    flags.flag("--no-halving", experiments.keep_window,
               "Keep the window on loss and congestion, as in the papers' experiments");
}

void complete_bench(const BenchExperiments& experiments, comm::Options& options) {
    static const policy::Experiment fixed_window({.fixed_window = true});
    if (experiments.keep_window || experiments.switchml) options.host_level = false;  // they concern packets
    if (experiments.keep_window) options.policy = &fixed_window;
    if (experiments.switchml) {
        options.protocol = std::make_shared<switchml::Rank>(experiments.mode, experiments.resend_after);
        options.scaling = tensor::Scaling::fixed;  // SwitchML has no other
    }
}

std::vector<std::string> flags_of(const BenchExperiments& experiments) {
    std::vector<std::string> flags;
    if (experiments.switchml) {
        flags = {"--protocol",         "switchml",
                 "--switchml-mode",    text_of(experiments.mode),
                 "--switchml-timeout", duration_text(experiments.resend_after)};
    }
    if (experiments.keep_window) flags.emplace_back("--no-halving");
    return flags;
}

void serve(const BenchExperiments& experiments, switchd::SwitchNodeConfig& config) {
    if (!experiments.switchml) return;
    config.serves_atp = false;
    config.other_bytes = std::exchange(config.memory_bytes, 0);
    config.slots = switchml::slots_in(config.other_bytes / config.shards, config.lanes);
    config.open_protocol = [slots = config.slots, lanes = config.lanes](std::uint32_t) {
        return std::make_unique<switchml::StreamPool>(switchml::SwitchConfig{.slots = slots, .lanes = lanes});
    };
}

}  // namespace

std::function<int()> register_lab_bench(CLI::App& program) {
    auto experiments = std::make_shared<BenchExperiments>();
    return add_bench(program,
                     {.add_flags = [experiments](CLI::App& command) { add_bench_flags(command, *experiments); },
                      .complete = [experiments](comm::Options& options) { complete_bench(*experiments, options); },
                      .flags_of_ranks = [experiments] { return flags_of(*experiments); },
                      .set_switch = [experiments](switchd::SwitchNodeConfig& config) { serve(*experiments, config); }});
}

}  // namespace atp::apps
