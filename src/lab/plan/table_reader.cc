// SPDX-License-Identifier: Apache-2.0
#include "plan/table_reader.h"

#include <fmt/format.h>

#include <sstream>

namespace atp::plan {
namespace {

// The value as TOML text.
std::string text_of(const toml::node& node) {
    std::ostringstream text;
    node.visit([&](const auto& value) { text << value; });
    return text.str();
}

}  // namespace

std::optional<std::string> TableReader::text(std::string_view key, std::string_view accepted) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    auto value = node->value_exact<std::string>();
    if (!value || value->empty()) {
        refuse(key, accepted);
        return std::nullopt;
    }
    return value;
}

bool TableReader::flag(std::string_view key, bool missing) {
    const toml::node* node = find(key);
    if (node == nullptr) return missing;
    const auto value = node->value_exact<bool>();
    if (!value) refuse(key, "true or false");
    return value.value_or(missing);
}

std::optional<std::uint64_t> TableReader::number(std::string_view key, std::uint64_t least, std::uint64_t most) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<std::int64_t>();
    if (value && *value >= 0 && static_cast<std::uint64_t>(*value) >= least &&
        static_cast<std::uint64_t>(*value) <= most) {
        return static_cast<std::uint64_t>(*value);
    }
    refuse(key, fmt::format("a whole number from {} to {}", least, most));
    return std::nullopt;
}

const toml::table* TableReader::table(std::string_view key, std::string_view accepted) {
    const toml::node* node = find(key);
    if (node == nullptr) return nullptr;
    if (node->as_table() == nullptr) refuse(key, accepted);
    return node->as_table();
}

void TableReader::list(std::string_view key, std::string_view accepted) {
    const toml::node* node = find(key);
    if (node != nullptr && node->as_array() == nullptr) refuse(key, accepted);
}

void TableReader::refuse(std::string_view key, std::string_view accepted) {
    const toml::node* node = table_.get(key);
    complain(fmt::format("{} = {}: use {}", key, node == nullptr ? "" : text_of(*node), accepted));
}

void TableReader::require(std::string_view key, std::string_view accepted) {
    if (!has(key)) complain(fmt::format("'{}' is missing: use {}", key, accepted));
}

void TableReader::complain(std::string_view words) {
    if (!problem_) problem_ = fmt::format("{}: {}", place_, words);
}

std::optional<std::string> TableReader::problem() {
    for (const auto& [key, node] : table_) {
        if (read_.contains(key.str())) continue;
        complain(fmt::format("'{}' is unknown: use {}", key.str(), fmt::join(read_, ", ")));
    }
    return problem_;
}

const toml::node* TableReader::find(std::string_view key) {
    read_.emplace(key);
    return table_.get(key);
}

std::optional<std::string> TableReader::digits_or_text(const toml::node& node) {
    if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
    return node.value_exact<std::string>();
}

}  // namespace atp::plan
