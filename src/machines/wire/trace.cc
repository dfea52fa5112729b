// SPDX-License-Identifier: Apache-2.0
#include "wire/trace.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "wire/control.h"
#include "wire/job_text.h"
#include "wire/packet.h"

namespace atp::wire {
namespace {

constexpr std::string_view time_unit = "us";

std::string describe_join(const Join& join) {
    std::string text = fmt::format("JOIN job={} token={:#x} ch={} hop={} lanes={}", job_to_string(join.terms.job),
                                   join.terms.token, join.terms.channel, join.level, join.terms.lanes);
    for (const JoiningUnit& unit : join.units) {
        fmt::format_to(std::back_inserter(text), " unit={}:{:#x}/{:#x}", unit.unit, unit.members, unit.mask0);
    }
    return text;
}

std::string describe_joined(const Joined& joined) {
    return fmt::format("JOINED job={} token={:#x} ch={} {} missing={:#x},{:#x}", job_to_string(joined.job),
                       joined.token, joined.channel, joined.ready ? "ready" : "waiting", joined.missing_members,
                       joined.missing_units);
}

std::string describe_refused(const Refused& refused) {
    return fmt::format("REFUSED job={} token={:#x} ch={} reason={}", job_to_string(refused.job), refused.token,
                       refused.channel, to_string(refused.reason));
}

std::string describe_leave(const Leave& leave) {
    return fmt::format("LEAVE job={} token={:#x} ch={} unit={} member={}", job_to_string(leave.job), leave.token,
                       leave.channel, leave.unit, leave.member);
}

std::string describe_control(ControlType type, std::span<const std::byte> bytes) {
    switch (type) {
        case ControlType::join:
            if (const auto join = decode<Join>(bytes)) return describe_join(*join);
            break;
        case ControlType::joined:
            if (const auto joined = decode<Joined>(bytes)) return describe_joined(*joined);
            break;
        case ControlType::refused:
            if (const auto refused = decode<Refused>(bytes)) return describe_refused(*refused);
            break;
        case ControlType::leave:
            if (const auto leave = decode<Leave>(bytes)) return describe_leave(*leave);
            break;
        default: return fmt::format("{} bytes={}", to_string(type), bytes.size());
    }
    return fmt::format("UNDECODABLE {} bytes={}", to_string(type), bytes.size());
}

bool is_type(std::string_view word) {
    return word.size() > 1 && std::ranges::all_of(word, [](char character) {
               return (character >= 'A' && character <= 'Z') || character == '_';
           });
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

// Removes the first word and the space behind it.
std::string_view take_word(std::string_view& text) {
    const std::string_view word = first_word(text);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

void append_trace_line(std::string& text, Time now, std::string_view where, std::string_view what,
                       std::string_view packet) {
    const std::int64_t ns = now.time_since_epoch().count();
    fmt::format_to(std::back_inserter(text), FMT_COMPILE("{}.{:03}{} "), ns / 1000, ns % 1000, time_unit);
    text.append(where).append(1, ' ').append(what);
    if (!packet.empty()) text.append(1, ' ').append(packet);
    text += '\n';
}

std::string describe_datagram(std::span<std::byte> datagram) {
    if (const auto type = control_type(datagram)) return describe_control(*type, datagram);
    Packet packet;
    const DecodeError error = decode(datagram, packet);
    return error == DecodeError::none
               ? to_string(packet.header, packet.lane_count())
               : fmt::format("UNDECODABLE reason=\"{}\" bytes={}", to_string(error), datagram.size());
}

std::optional<std::string_view> TraceLine::value(std::string_view name) const {
    for (std::string_view rest = fields; !rest.empty();) {
        const std::string_view word = take_word(rest);
        if (word.size() <= name.size() || !word.starts_with(name) || word[name.size()] != '=') continue;
        return word.substr(name.size() + 1);
    }
    return std::nullopt;
}

std::optional<std::uint64_t> TraceLine::number(std::string_view name) const {
    const auto digits = value(name);
    return digits ? whole_number<std::uint64_t>(*digits) : std::nullopt;
}

std::optional<std::uint32_t> TraceLine::job() const {
    const auto digits = value("job");
    return digits ? parse_job(*digits) : std::nullopt;
}

std::optional<TraceLine> parse_trace_line(std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    const std::string_view time = take_word(line);
    if (!time.ends_with(time_unit)) return std::nullopt;
    const auto time_us = whole_number<double>(time.substr(0, time.size() - time_unit.size()));
    if (!time_us) return std::nullopt;
    TraceLine parsed{.time_us = *time_us};
    parsed.where = take_word(line);
    if (parsed.where.empty() || line.empty()) return std::nullopt;
    const std::string_view event = line;
    while (!line.empty() && !is_type(first_word(line))) static_cast<void>(take_word(line));
    if (line.empty()) {
        parsed.what = event;
        return parsed;
    }
    parsed.what = event.substr(0, static_cast<std::size_t>(line.data() - event.data()));
    if (parsed.what.ends_with(' ')) parsed.what.remove_suffix(1);
    parsed.type = take_word(line);
    parsed.fields = line;
    return parsed;
}

bool TraceFilter::accepts(const TraceLine& line) const {
    const auto equal = [&](const std::optional<std::uint64_t>& required, std::string_view name) {
        return !required || line.number(name) == required;
    };
    return (!job || line.job() == job) && equal(channel, "ch") && equal(seq, "seq") && (!type || *type == line.type) &&
           (!what || *what == line.what) && (!where || line.where.find(*where) != std::string_view::npos);
}

}  // namespace atp::wire
