// SPDX-License-Identifier: Apache-2.0
// Options as text: parser, printer, bounds, and the text that ranks compare.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "base/units.h"
#include "comm/option_table.h"
#include "wire/control.h"

namespace atp::comm {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    if (text.empty()) return parts;
    for (std::size_t end = 0; end != std::string_view::npos;) {
        end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end != std::string_view::npos) text.remove_prefix(end + 1);
    }
    return parts;
}

template <class Number>
bool read_number(std::string_view text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

// ------------------------------------------------------------------------------------------------------------- Bounds

template <class Value>
requires(!std::is_enum_v<Value>) bool is_accepted(const OptionRow& /*row*/, const Value& /*value*/) { return true; }
bool is_accepted(const OptionRow& row, std::uint32_t value) {
    if (value == 0 && row.fallback == "0") return true;
    return value >= row.least && value <= row.most && (row.type != OptionType::power || std::has_single_bit(value));
}
bool is_accepted(const OptionRow& row, double value) {
    return std::isfinite(value) && (value > 0 || (value == 0 && row.fallback == "0"));
}
template <class Choice>
requires std::is_enum_v<Choice>
bool is_accepted(const OptionRow& row, Choice value) {
    return static_cast<std::size_t>(value) < split(row.choices, '|').size();
}

// ------------------------------------------------------------------------------------------------------------- Parser

bool read_value(const OptionRow& /*row*/, std::string_view text, std::string& value) {
    value = text;
    return true;
}
bool read_value(const OptionRow& /*row*/, std::string_view text, std::vector<std::string>& value) {
    const auto parts = split(text, ',');
    value.assign(parts.begin(), parts.end());
    return std::ranges::find(parts, std::string_view{}) == parts.end();
}
bool read_value(const OptionRow& /*row*/, std::string_view text, std::vector<unsigned>& value) {
    value.clear();
    for (const std::string_view part : split(text, ',')) {
        if (!read_number(part, value.emplace_back())) return false;
    }
    return true;
}
bool read_value(const OptionRow& row, std::string_view text, std::uint32_t& value) {
    return read_number(text, value) && is_accepted(row, value);
}
bool read_value(const OptionRow& row, std::string_view text, double& value) {
    if (row.type == OptionType::rate && text != "0") {
        const auto rate = parse_rate(text);
        if (rate) value = static_cast<double>(*rate);
        return rate.has_value();
    }
    return read_number(text, value) && is_accepted(row, value);
}
bool read_value(const OptionRow& /*row*/, std::string_view text, bool& value) {
    value = text == "true" || text == "on";
    return value || text == "false" || text == "off";
}
template <class Choice>
requires std::is_enum_v<Choice>
bool read_value(const OptionRow& row, std::string_view text, Choice& value) {
    const auto choices = split(row.choices, '|');
    const auto found = std::ranges::find(choices, text);
    if (found == choices.end()) return false;
    value = static_cast<Choice>(found - choices.begin());
    return true;
}
template <class Value>
bool read_optional(const std::optional<Value>& read, Value& value) {
    if (read) value = *read;
    return read.has_value();
}
bool read_value(const OptionRow& /*row*/, std::string_view text, control::Multicast& value) {
    return read_optional(control::parse_multicast(text), value);
}
bool read_value(const OptionRow& row, std::string_view text, Duration& value) {
    return read_optional(row.type == OptionType::wait ? parse_wait(text) : parse_duration(text), value);
}

// ------------------------------------------------------------------------------------------------------------ Printer

std::string to_text(const OptionRow& /*row*/, const std::string& value) { return value; }
template <class Part>
std::string to_text(const OptionRow& /*row*/, const std::vector<Part>& value) {
    return fmt::format("{}", fmt::join(value, ","));
}
template <class Number>
requires std::is_arithmetic_v<Number> std::string to_text(const OptionRow& row, Number value) {
    return row.type == OptionType::rate ? std::to_string(std::llround(value)) : fmt::format("{}", value);
}
template <class Choice>
requires std::is_enum_v<Choice> std::string to_text(const OptionRow& row, Choice value) {
    const auto index = static_cast<std::size_t>(value);
    const auto choices = split(row.choices, '|');
    return index < choices.size() ? std::string(choices[index]) : std::to_string(index);
}
std::string to_text(const OptionRow& /*row*/, const control::Multicast& value) { return to_string(value); }
std::string to_text(const OptionRow& /*row*/, Duration value) { return duration_text(value); }

// Calls `body` with the field of the row, if it has one.
template <class Answer, class SomeOptions, class Body>
Answer with_field(SomeOptions& options, const OptionRow& row, const Body& body, Answer otherwise) {
    return std::visit(
        [&](const auto field) -> Answer {
            if constexpr (std::same_as<std::remove_const_t<decltype(field)>, std::monostate>) {
                return otherwise;
            } else {
                return body(options.*field);
            }
        },
        row.field);
}

}  // namespace

std::string accepted_values(const OptionRow& row) {
    switch (row.type) {
        case OptionType::text:
        case OptionType::list:
        case OptionType::cores:
        case OptionType::multicast:
        case OptionType::file: return std::string(row.accepted);
        case OptionType::count: return fmt::format("a whole number from {} to {}", row.least, row.most);
        case OptionType::power: return fmt::format("a power of two from {} to {}", row.least, row.most);
        case OptionType::number: return "a number above 0";
        case OptionType::rate: return std::string(rate_forms);
        case OptionType::flag: return "true, on, false or off";
        case OptionType::time: return std::string(duration_forms);
        case OptionType::wait: return std::string(wait_forms);
        default: break;
    }
    auto choices = split(row.choices, '|');
    const std::string_view last = choices.back();
    choices.pop_back();
    return fmt::format("{} or {}", fmt::join(choices, ", "), last);
}

std::string default_text(const OptionRow& row) {
    if (!row.fallback_help.empty()) return std::string(row.fallback_help);
    return row.fallback.empty() ? "none" : std::string(row.fallback);
}

std::string option_refusal(const OptionRow& row, std::string_view text) {
    // errors.md, calls, malformed: [options](options.md#table) lists what each accepts
    return fmt::format("{}: '{}' is invalid; use {}", row.name, text, accepted_values(row));
}

Result<void> set_option(Options& options, std::string_view name, std::string_view text) {
    const OptionRow* const row = find_option(name);
    const auto read = [&](auto& value) { return read_value(*row, text, value); };
    if (row == nullptr || std::holds_alternative<std::monostate>(row->field)) {
        return fail(Operation::parse, Reason::malformed, {},
                    // errors.md, calls, malformed
                    fmt::format("{}: no option has this name; docs/reference/options.md lists them", name));
    }
    if (with_field(options, *row, read, false)) return {};
    return fail(Operation::parse, Reason::malformed, {}, option_refusal(*row, text));
}

std::string option_text(const Options& options, const OptionRow& row) {
    const auto print = [&](const auto& value) { return to_text(row, value); };
    return with_field(options, row, print, std::string());
}

std::optional<std::string> option_problem(const Options& options) {
    for (const OptionRow& row : option_table()) {
        const auto accepts = [&](const auto& value) { return is_accepted(row, value); };
        if (!with_field(options, row, accepts, true)) return option_refusal(row, option_text(options, row));
        const std::size_t bytes = row.type == OptionType::text ? option_text(options, row).size() : 0;
        if (bytes <= wire::max_word_bytes) continue;
        // errors.md, calls, malformed
        return fmt::format("{} has {} bytes; use at most {}", row.name, bytes, wire::max_word_bytes);
    }
    const std::size_t bytes = agreed_text(options).size();
    if (bytes <= wire::max_terms_bytes) return std::nullopt;
    // errors.md, calls, malformed
    return fmt::format("dedicated_servers: the options of all ranks have {} bytes; use at most {}, with shorter names",
                       bytes, wire::max_terms_bytes);
}

std::string agreed_text(const Options& options) {
    std::string text = fmt::format("version={}", wire::control_version & 0xFU);
    for (const OptionRow& row : option_table()) {
        if (row.scope != OptionScope::agreed) continue;
        if (row.type == OptionType::list) {
            for (const std::string& server : options.dedicated_servers) text += " " + server;
        } else if (row.type == OptionType::server_place) {
            text += fmt::format(" {}={}", row.name, static_cast<int>(options.server));
        } else {
            text += fmt::format(" {}={}", row.name, option_text(options, row));
        }
    }
    return text;
}

}  // namespace atp::comm
