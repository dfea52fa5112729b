// SPDX-License-Identifier: Apache-2.0
#include "apps/common/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "apps/common/command_text.h"
#include "tables/table_reader.h"

namespace atp::apps {
namespace {

constexpr std::string_view config_flag = "--config";
constexpr std::size_t most_bytes = std::size_t{1} << 20U;

// The last one counts, as for every flag. nullopt: none.
std::optional<std::string> path_in(const std::vector<std::string>& typed) {
    std::optional<std::string> path;
    for (std::size_t i = 0; i < typed.size(); ++i) {
        const std::string_view word = typed[i];
        if (word == config_flag && i + 1 < typed.size()) path = typed[i + 1];
        if (word.starts_with("--config=")) path = word.substr(config_flag.size() + 1);
    }
    return path;
}

bool is_typed(const CLI::Option& option, const std::vector<std::string>& typed) {
    const std::vector<std::string> names = names_of(option);
    return std::ranges::any_of(typed, [&](std::string_view word) {
        return std::ranges::find(names, word.substr(0, word.find('='))) != names.end();
    });
}

// What a file may not set: what is about the file itself, and what ends before the command begins.
bool is_setting(const CLI::Option& option) {
    constexpr std::array<std::string_view, 3> others{"config", "check-config", "help"};
    const std::vector<std::string>& names = option.get_lnames();
    return !option.get_positional() && !option.get_group().empty() && !names.empty() &&
           std::ranges::find(others, names.front()) == others.end();
}

tl::expected<std::string, std::string> contents_of(const std::string& path) {
    // Reading it again must give what it says then, and a pipe gives nothing.
    std::error_code error;
    if (const auto status = std::filesystem::status(path, error); std::filesystem::exists(status)) {
        // errors.md, none: it says what to write
        if (!std::filesystem::is_regular_file(status)) return tl::unexpected(path + ": use a regular file");
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text(most_bytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (!file.is_open() || file.bad() || errno != 0) {
        return tl::unexpected(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    // errors.md, none: it says what to write
    if (text.size() > most_bytes) return tl::unexpected(fmt::format("{}: use a file of at most 1 MiB", path));
    return text;
}

}  // namespace

tl::expected<std::optional<ConfigFile>, std::string> ConfigFile::named_in(const std::vector<std::string>& typed,
                                                                          const Command& command) {
    const auto path = path_in(typed);
    if (!path) return std::nullopt;
    const auto text = contents_of(*path);
    if (!text) return tl::unexpected(text.error());
    const auto document = tables::parse_document(*text, *path);
    if (!document) return tl::unexpected(document.error());
    ConfigFile file(*path);
    tables::TableReader reader(*document, *path);
    for (const CLI::Option* option : command.get_options()) {
        if (!is_setting(*option)) continue;
        const std::string& key = option->get_lnames().front();
        auto value = reader.words(key);
        if (!value) continue;
        if (!takes_value(*option) && *value != "true" && *value != "false") reader.refuse(key, "true or false");
        if (!is_typed(*option, typed)) file.settings_[key] = {.value = *std::move(value), .line = reader.line_of(key)};
    }
    if (auto problem = reader.problem()) return tl::unexpected(*std::move(problem));
    return file;
}

std::vector<std::string> ConfigFile::words() const {
    std::vector<std::string> words;
    for (const auto& [key, setting] : settings_) words.push_back(fmt::format("--{}={}", key, setting.value));
    return words;
}

std::string ConfigFile::located(const std::string& complaint) const {
    for (const auto& [key, setting] : settings_) {
        const std::string flag = "--" + key;
        if (!complaint.starts_with(flag + ":")) continue;
        return fmt::format("{}: {} (line {})", path_, complaint.substr(2), setting.line);
    }
    return complaint;
}

}  // namespace atp::apps
