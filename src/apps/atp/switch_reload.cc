// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "apps/atp/switch_flags.h"

namespace atp::apps {
namespace {

using observe::LogEvent;
using Settings = std::map<std::string, ConfigFile::Setting>;

// Keys that a running switch follows.
constexpr std::array<std::string_view, 4> followed{"clients", "servers", "groups", "log-level"};

std::string value_in(const Settings& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? "the default" : found->second.value;
}

std::set<std::string> different_keys(const Settings& before, const Settings& after) {
    std::set<std::string> keys;
    for (const Settings* each : {&before, &after}) {
        for (const auto& entry : *each) {
            if (value_in(before, entry.first) != value_in(after, entry.first)) keys.insert(entry.first);
        }
    }
    return keys;
}

// The settings of a file, and what they and the typed words say together.
struct Reading {
    ConfigFile file;
    SwitchOptions options;
};

// nullopt: no file is named.
tl::expected<std::optional<Reading>, std::string> read_settings(const std::vector<std::string>& typed,
                                                                const std::function<void(Command&)>& add_flags) {
    SwitchOptions options;
    Command command("switch");
    add_switch_flags(command, options);
    if (add_flags) add_flags(command);
    auto file = ConfigFile::named_in(typed, command);
    if (!file) return tl::unexpected(file.error());
    if (!*file) return std::nullopt;
    std::vector<std::string> words = (*file)->words();
    words.insert(words.end(), typed.begin(), typed.end());
    std::ranges::reverse(words);  // as CLI11 takes them
    try {
        command.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        return tl::unexpected((*file)->located(error.what()));
    }
    return Reading{.file = **std::move(file), .options = std::move(options)};
}

}  // namespace

SwitchReload::SwitchReload(TenantsPart tenants, std::vector<std::string> typed, std::function<void(Command&)> add_flags)
    : tenants_(std::move(tenants)), typed_(std::move(typed)), add_flags_(std::move(add_flags)) {
    const auto reading = read_settings(typed_, add_flags_);
    if (!reading || !*reading) return;
    path_ = (*reading)->file.path();
    applied_ = (*reading)->file.settings();
}

void SwitchReload::reload(switchd::SwitchNode& node, KernelPart* in_path, observe::Log& log) {
    if (path_.empty() && !tenants_.has_file()) {
        log.write(LogEvent::settings_kept,
                  {{"reason", "nothing to read: the switch runs without --config and --tenants"}});
    }
    if (!path_.empty()) reload_settings(node, log);
    if (tenants_.has_file()) tenants_.reload(node, in_path, log);
}

void SwitchReload::reload_settings(switchd::SwitchNode& node, observe::Log& log) {
    const auto reading = read_settings(typed_, add_flags_);
    if (!reading) {
        log.write(LogEvent::settings_kept, {{"file", path_}, {"reason", reading.error()}});
        return;
    }
    const auto& [file, options] = **reading;
    const Settings& read = file.settings();
    const std::set<std::string> keys = different_keys(applied_, read);
    if (keys.empty()) log.write(LogEvent::settings_changed, {{"file", path_}, {"reason", "nothing differs"}});
    for (const std::string& key : keys) {
        const std::string change = fmt::format("{} {} (was {})", key, value_in(read, key), value_in(applied_, key));
        if (std::ranges::find(followed, key) == followed.end()) {
            log.write(LogEvent::settings_kept,
                      {{"file", path_}, {"reason", change + " counts from the next start of the switch"}});
            continue;
        }
        log.write(LogEvent::settings_changed, {{"file", path_}, {"reason", change}});
        if (read.contains(key)) {
            applied_[key] = read.at(key);
        } else {
            applied_.erase(key);
        }
    }
    const bool names_level = keys.contains("log-level");
    const bool names_hosts = std::ranges::any_of(
        followed, [&](std::string_view key) { return key != "log-level" && keys.contains(std::string(key)); });
    const switchd::SwitchNodeConfig& config = options.config;
    if (names_hosts) {
        node.set_hosts({.clients = config.clients, .servers = config.servers, .groups = config.groups});
    }
    if (names_level) log.set_level(log_config(options).level);
}

}  // namespace atp::apps
