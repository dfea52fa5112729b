// SPDX-License-Identifier: Apache-2.0
#include "tables/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/suggestion.h"

namespace atp::tables {
namespace {

// The value as TOML text.
std::string text_of(const toml::node& node) {
    std::ostringstream text;
    node.visit([&](const auto& value) { text << value; });
    return text.str();
}

bool is_in(std::optional<std::int64_t> value, std::uint64_t least, std::uint64_t most) {
    return value && *value >= 0 && static_cast<std::uint64_t>(*value) >= least &&
           static_cast<std::uint64_t>(*value) <= most;
}

}  // namespace

tl::expected<toml::table, std::string> parse_document(std::string_view text, std::string_view name) {
    toml::parse_result parsed = toml::parse(text, name);
    if (parsed) return std::move(parsed).table();
    // errors.md, none: a reader of TOML says what is wrong
    return tl::unexpected(fmt::format("{}: line {}: invalid TOML: {}", name, parsed.error().source().begin.line,
                                      parsed.error().description()));
}

tl::expected<Tables, std::string> parse_tables(std::string_view text, std::string_view name, std::string_view kind) {
    using Problem = tl::unexpected<std::string>;
    auto document = parse_document(text, name);
    if (!document) return Problem(std::move(document).error());
    Tables tables{.document = *std::move(document), .kind = std::string(kind)};
    const toml::array* found = tables.document.get_as<toml::array>(kind);
    if (tables.document.size() != 1 || found == nullptr || found->empty() || !found->is_array_of_tables()) {
        // errors.md, none: it says what to write
        return Problem(fmt::format("{}: use [[{}]], once per {}, and no other table", name, kind, kind));
    }
    return tables;
}

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
    if (is_in(value, least, most)) return static_cast<std::uint64_t>(*value);
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

std::vector<std::string> TableReader::texts(std::string_view key, std::string_view accepted) {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    std::vector<std::string> found;
    const auto add = [&](const toml::node& entry) {
        if (auto value = entry.value_exact<std::string>(); value && !value->empty()) found.push_back(*std::move(value));
    };
    const toml::array* const list = node->as_array();
    if (list == nullptr) {
        add(*node);
    } else {
        for (const toml::node& entry : *list) add(entry);
    }
    if (!found.empty() && found.size() == (list == nullptr ? 1 : list->size())) return found;
    refuse(key, accepted);
    return {};
}

std::optional<std::string> TableReader::words(std::string_view key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    std::vector<std::string> found;
    const auto add = [&](const toml::node& entry) {
        if (const auto flag = entry.value_exact<bool>()) found.emplace_back(*flag ? "true" : "false");
        if (auto text = digits_or_text(entry); text && !text->empty()) found.push_back(*std::move(text));
    };
    const toml::array* const list = node->as_array();
    if (list == nullptr) {
        add(*node);
    } else {
        for (const toml::node& entry : *list) add(entry);
    }
    if (!found.empty() && found.size() == (list == nullptr ? 1 : list->size())) {
        return fmt::format("{}", fmt::join(found, ","));
    }
    const bool empty = list != nullptr ? list->empty() : node->value_or(std::string_view("-")).empty();
    refuse(key, empty ? "at least one value, or leave the key out"
                      : "a text, a whole number, true, false, or a list of them");
    return std::nullopt;
}

std::vector<std::uint64_t> TableReader::numbers(std::string_view key, std::uint64_t least, std::uint64_t most) {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    std::vector<std::uint64_t> found;
    const toml::array* const list = node->as_array();
    if (list != nullptr) {
        for (const toml::node& entry : *list) {
            const auto value = entry.value_exact<std::int64_t>();
            if (is_in(value, least, most)) found.push_back(static_cast<std::uint64_t>(*value));
        }
    }
    if (list != nullptr && found.size() == list->size()) return found;
    refuse(key, fmt::format("a list of whole numbers from {} to {}", least, most));
    return {};
}

void TableReader::refuse(std::string_view key, std::string_view accepted) {
    const toml::node* node = table_.get(key);
    // errors.md, none: it says what to write
    complain_of(key, fmt::format("{} = {}: use {}", key, node == nullptr ? "" : text_of(*node), accepted));
}

void TableReader::require(std::string_view key, std::string_view accepted) {
    // errors.md, none: it says what to write
    if (!has(key)) complain(fmt::format("'{}' is missing: use {}", key, accepted));
}

void TableReader::complain(std::string_view words) { complain_at(table_, words); }

void TableReader::complain_of(std::string_view key, std::string_view words) {
    const toml::node* node = table_.get(key);
    complain_at(node == nullptr ? table_ : *node, words);
}

void TableReader::complain_at(const toml::node& node, std::string_view words) {
    if (!problem_) problem_ = fmt::format("{}: {} (line {})", place_, words, node.source().begin.line);
}

std::optional<std::string> TableReader::problem() {
    for (const auto& [key, node] : table_) {
        if (read_.contains(key.str())) continue;
        const std::vector<std::string> known(read_.begin(), read_.end());
        const std::string near = nearest(key.str(), known);
        if (near.empty()) {
            // errors.md, none: it says what to write
            complain_at(node, fmt::format("'{}' is unknown: use {}", key.str(), fmt::join(read_, ", ")));
        } else {
            // errors.md, none: it says what to write
            complain_at(node, fmt::format("'{}' is unknown: did you mean '{}'?", key.str(), near));
        }
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

}  // namespace atp::tables
