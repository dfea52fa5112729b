// SPDX-License-Identifier: Apache-2.0
// The text of a log line, without its time.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "observe/events.h"
#include "wire/address.h"
#include "wire/job_text.h"

namespace atp::observe {

enum class LogFormat : std::uint8_t { text, json };

[[nodiscard]] std::string_view to_string(LogFormat format);
[[nodiscard]] std::optional<LogFormat> log_format_of(std::string_view name);

// One `key=value` of a line.
struct LogField {
    template <std::integral Number>
    LogField(std::string_view name, Number number) : key(name), value(std::to_string(number)), is_number(true) {}
    LogField(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
    LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
    LogField(std::string_view name, const char* text) : key(name), value(text) {}
    LogField(std::string_view name, const wire::Address& address) : key(name), value(wire::to_string(address)) {}

    std::string_view key;  // a literal
    std::string value;
    bool is_number = false;
};

[[nodiscard]] inline LogField job_field(std::uint32_t job) { return {"job", wire::job_to_string(job)}; }

// `info job ready job=650de528 channel=0 reason="two words"`. A value with other characters than letters, digits and
// .:-_/[]%,+ is quoted and escaped as in JSON, so that bytes from the network cannot start a line or control a
// terminal.
[[nodiscard]] std::string text_line(const EventRow& row, std::span<const LogField> fields);
// The members of a JSON object, without braces: `"level":"info","event":"job ready","job":"650de528",...`.
[[nodiscard]] std::string json_members(const EventRow& row, std::span<const LogField> fields);

// True if the definition of the event lists the keys of these fields, in their order, for a line of a switch or a rank.
[[nodiscard]] bool has_defined_keys(const EventRow& row, std::span<const LogField> fields);

// The fields of a missing feature, from "gso: EIO from the device".
struct MissingFeature {
    std::string_view name;
    std::string_view reason;
};
[[nodiscard]] MissingFeature missing_feature(std::string_view text);

}  // namespace atp::observe
