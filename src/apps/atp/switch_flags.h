// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/atp/kernel_part.h"
#include "apps/atp/metrics_part.h"
#include "apps/common/confinement.h"
#include "observe/events.h"
#include "observe/log.h"
#include "observe/log_text.h"
#include "switchd/config.h"

namespace atp::apps {

class Command;

// What the flags of `atp switch` say.
struct SwitchOptions {
    std::string listen = "0.0.0.0:4790";
    std::string parent;
    std::uint32_t lanes = 0;  // 0: as many as fill a packet of the interface
    bool pin = false;
    bool hosts_servers = true;
    bool quiet = false;
    bool json = false;
    std::uint32_t busy_poll_us = 0;
    KernelPartConfig kernel;
    std::optional<observe::Severity> log_level;  // nullopt: info; with `quiet`: error
    observe::LogFormat log_format = observe::LogFormat::text;
    std::string trace;
    std::string state;
    std::string tenants;
    std::string parent_key;
    MetricsOptions metrics;
    std::string config_file;
    std::string control;  // path of the local socket; empty: see drain_part.h
    bool check = false;   // of the flags only
    Confinement confinement = usual_confinement;
    switchd::SwitchNodeConfig config;
};

[[nodiscard]] observe::LogConfig log_config(const SwitchOptions& options);
// `options`: outlives the command.
void add_switch_flags(Command& command, SwitchOptions& options);

}  // namespace atp::apps
