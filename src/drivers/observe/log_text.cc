// SPDX-License-Identifier: Apache-2.0
#include "observe/log_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atp::observe {
namespace {

bool is_plain(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') ||
           std::string_view(".:-_/[]%,+").find(character) != std::string_view::npos;
}

// Escapes everything outside of ASCII. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text) {
    constexpr bool only_ascii = true;
    return nlohmann::json(text).dump(-1, ' ', only_ascii, nlohmann::json::error_handler_t::replace);
}

// `keys`: of an EventRow.
bool lists(std::string_view keys, std::span<const LogField> fields) {
    while (!keys.empty()) {
        const std::size_t end = std::min(keys.find(' '), keys.size());
        const bool optional = keys[end - 1] == '?';
        if (!fields.empty() && fields.front().key == keys.substr(0, end - (optional ? 1 : 0))) {
            fields = fields.subspan(1);
        } else if (!optional) {
            return false;
        }
        keys.remove_prefix(std::min(end + 1, keys.size()));
    }
    return fields.empty();
}

}  // namespace

std::string_view to_string(LogFormat format) { return format == LogFormat::json ? "json" : "text"; }

std::optional<LogFormat> log_format_of(std::string_view name) {
    if (name == to_string(LogFormat::text)) return LogFormat::text;
    if (name == to_string(LogFormat::json)) return LogFormat::json;
    return std::nullopt;
}

std::string text_line(const EventRow& row, std::span<const LogField> fields) {
    std::string line(to_string(row.severity));
    line.append(1, ' ').append(row.words);
    for (const LogField& field : fields) {
        const bool plain = !field.value.empty() && std::ranges::all_of(field.value, is_plain);
        line.append(1, ' ').append(field.key).append(1, '=').append(plain ? field.value : json_text(field.value));
    }
    return line;
}

bool has_defined_keys(const EventRow& row, std::span<const LogField> fields) {
    return std::ranges::any_of(row.keys, [&](std::string_view keys) { return !keys.empty() && lists(keys, fields); });
}

MissingFeature missing_feature(std::string_view text) {
    constexpr std::string_view separator = ": ";
    const std::size_t end = text.find(separator);
    return {.name = text.substr(0, end),
            .reason = end == std::string_view::npos ? std::string_view() : text.substr(end + separator.size())};
}

std::string json_members(const EventRow& row, std::span<const LogField> fields) {
    std::string members = "\"level\":" + json_text(to_string(row.severity)) + ",\"event\":" + json_text(row.words);
    for (const LogField& field : fields) {
        members += ',' + json_text(field.key) + ':' + (field.is_number ? field.value : json_text(field.value));
    }
    return members;
}

}  // namespace atp::observe
