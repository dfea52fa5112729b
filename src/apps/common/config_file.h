// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace atp::apps {

class Command;

// The TOML file of `--config`: `key = value` is the flag `--key value`, `key = true` a flag without a value, and a list
// is a value with commas. What was typed wins over the file.
class ConfigFile {
  public:
    struct Setting {
        std::string value;
        std::uint32_t line = 0;
    };

    // `typed`: the words after the name of the command. nullopt: none of them is --config.
    [[nodiscard]] static tl::expected<std::optional<ConfigFile>, std::string> named_in(
        const std::vector<std::string>& typed, const Command& command);

    [[nodiscard]] const std::string& path() const { return path_; }
    // By key, without those that were typed.
    [[nodiscard]] const std::map<std::string, Setting>& settings() const { return settings_; }
    // The settings as one would type them.
    [[nodiscard]] std::vector<std::string> words() const;
    // What is wrong with a flag, as CLI11 says it, with the place of the file if the flag is from there.
    [[nodiscard]] std::string located(const std::string& complaint) const;

  private:
    explicit ConfigFile(std::string path) : path_(std::move(path)) {}

    std::string path_;
    std::map<std::string, Setting> settings_;
};

}  // namespace atp::apps
