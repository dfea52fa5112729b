// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/common/command.h"
#include "switchd/config.h"

namespace atp::apps {

// Whether a flag is on the command line, with any value.
using Given = std::function<bool(const std::string& flag)>;

// Calls by which another program extends the command. All calls are optional, and are made in this order.
struct SwitchAdditions {
    std::function<void(Command& command)> add_flags{};
    // Completes the configuration. Returns why the flags exclude each other; nullopt: they do not.
    std::function<std::optional<std::string>(switchd::SwitchNodeConfig& config, bool in_kernel, const Given& given)>
        complete{};
    // Runs a switch of its own instead, and returns the exit status; nullopt: it does not.
    std::function<std::optional<int>(const switchd::SwitchNodeConfig& config, bool quiet, bool json)> run{};
    // Lines about the additions, after the switch has started.
    std::function<std::string(const switchd::SwitchNodeConfig& config)> describe{};
};

// Adds the command `switch`, which runs a switch on this host.
[[nodiscard]] std::function<int()> add_switch(CLI::App& program, SwitchAdditions additions = {});
[[nodiscard]] std::function<int()> register_switch(CLI::App& program);

}  // namespace atp::apps
