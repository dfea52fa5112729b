// SPDX-License-Identifier: Apache-2.0
// Functions that build the rows of scenario_table.h.
#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "random/random.h"
#include "sim/scenario_table.h"

namespace atp::sim {

using Rows = std::vector<ScenarioRow>;
using Draw = void (*)(Random& random, Scenario& scenario);

// Each function appends rows. The order of the calls is the order of the table.
void add_network_rows(Rows& rows);
void add_packet_rows(Rows& rows);
void add_job_rows(Rows& rows);
void add_protocol_rows(Rows& rows);
void add_fault_rows(Rows& rows);
void add_gradient_rows(Rows& rows);
void add_training_rows(Rows& rows);
void add_host_rows(Rows& rows);
void add_switchml_rows(Rows& rows);
void add_train_row(Rows& rows);
void add_owner_row(Rows& rows);
void add_list_row(Rows& rows);
void add_number_rows(Rows& rows);

// Numbers in memory instead of gradients: tensors of at most so many elements.
void draw_numbers(Random& random, Scenario& scenario, unsigned most_elements);

// A field of a scenario, or of a part of it: field_of<&Scenario::faults, &Faults::loss>(scenario).
template <auto... Path, class S>
auto& field_of(S& scenario) {
    return (scenario.*....*Path);
}

// Parses and prints one value.
template <class T>
struct TextForm {
    std::string placeholder;
    std::string accepted;
    std::function<std::optional<T>(std::string_view)> parse;
    std::function<std::string(const T&)> print = [](const T& value) { return fmt::format("{}", value); };
};

template <class T>
TextForm<T> number(std::uint64_t least, std::uint64_t most) {
    const auto parse = [least, most](std::string_view text) -> std::optional<T> {
        const auto value = parse_whole(text, least, most);
        return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
    };
    return {.placeholder = "N", .accepted = whole_forms(least, most), .parse = parse};
}

inline TextForm<double> real(std::string placeholder, double least, double most) {
    return {.placeholder = std::move(placeholder),
            .accepted = fmt::format("a number from {} to {}", least, most),
            .parse = [least, most](std::string_view text) { return parse_real(text, least, most); }};
}

inline TextForm<double> share() { return real("P", 0, 1); }

inline TextForm<std::int64_t> rate() {
    return {.placeholder = "RATE", .accepted = std::string(rate_forms), .parse = parse_rate};
}

inline TextForm<std::uint64_t> size() {
    return {.placeholder = "SIZE", .accepted = std::string(size_forms), .parse = parse_size};
}

inline TextForm<Duration> duration() {
    return {.placeholder = "TIME",
            .accepted = std::string(duration_forms),
            .parse = parse_duration,
            .print = duration_text};
}

// As duration(), but above 0.
inline TextForm<Duration> interval() {
    return {.placeholder = "TIME", .accepted = std::string(wait_forms), .parse = parse_wait, .print = duration_text};
}

inline TextForm<Time> instant() {
    const auto parse = [](std::string_view text) -> std::optional<Time> {
        const auto since_start = parse_duration(text);
        return since_start ? std::optional(Time(*since_start)) : std::nullopt;
    };
    return {
        .placeholder = "TIME", .accepted = std::string(duration_forms), .parse = parse, .print = [](const Time& time) {
            return duration_text(time.time_since_epoch());
        }};
}

template <class T>
using Word = std::pair<std::string_view, T>;

// A value that is one of a few words.
template <class T, std::size_t N>
TextForm<T> words(const std::string& placeholder, const std::array<Word<T>, N>& words) {
    const auto parse = [words](std::string_view text) -> std::optional<T> {
        for (const auto& [word, value] : words) {
            if (word == text) return value;
        }
        return std::nullopt;
    };
    const auto print = [words](const T& requested) {
        for (const auto& [word, value] : words) {
            if (value == requested) return std::string(word);
        }
        return std::string("unknown");
    };
    std::string accepted;
    for (std::size_t i = 0; i < N; ++i) {
        accepted += fmt::format("{}{}", i == 0 ? "" : i + 1 == N ? " or " : ", ", words[i].first);
    }
    return {.placeholder = placeholder, .accepted = std::move(accepted), .parse = parse, .print = print};
}

namespace detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

// A flag with a value that sets a field. If the field is a vector, the flag may occur several times. An optional field
// is printed if it has a value, any other field if it differs from its default.
template <auto... Path, class T>
ScenarioRow row(ScenarioRow::Group group, const std::string& flag, const TextForm<T>& form, const std::string& help,
                Draw draw = nullptr) {
    using Field = std::remove_reference_t<decltype(field_of<Path...>(std::declval<Scenario&>()))>;
    ScenarioRow row{.group = group,
                    .flag = flag,
                    .placeholder = form.placeholder,
                    .accepted = form.accepted,
                    .help = help,
                    .repeats = detail::IsVector<Field>::value};
    row.read = [parse = form.parse](std::string_view text, Scenario& scenario) {
        auto value = parse(text);
        if (!value) return false;
        if constexpr (detail::IsVector<Field>::value) {
            field_of<Path...>(scenario).push_back(*std::move(value));
        } else if constexpr (detail::IsOptional<Field>::value) {
            field_of<Path...>(scenario) = std::move(value);
        } else {
            field_of<Path...>(scenario) = *std::move(value);
        }
        return true;
    };
    row.write = [print = form.print](const Scenario& scenario) -> std::vector<std::string> {
        const Field& field = field_of<Path...>(scenario);
        std::vector<std::string> texts;
        if constexpr (detail::IsVector<Field>::value) {
            for (const T& value : field) texts.push_back(print(value));
        } else if constexpr (detail::IsOptional<Field>::value) {
            if (field) texts.push_back(print(*field));
        } else if (const Scenario usual; field != field_of<Path...>(usual)) {
            texts.push_back(print(field));
        }
        return texts;
    };
    row.draw = draw;
    return row;
}

// A flag without a value that sets a field to `value`. The default of the field is `!value`.
template <auto... Path>
ScenarioRow toggle(ScenarioRow::Group group, const std::string& flag, bool value, const std::string& help,
                   Draw draw = nullptr) {
    return {.group = group,
            .flag = flag,
            .help = help,
            .read =
                [value](std::string_view /*text*/, Scenario& scenario) {
                    field_of<Path...>(scenario) = value;
                    return true;
                },
            .write = [value](const Scenario& scenario) -> std::vector<std::string> {
                if (field_of<Path...>(scenario) == value) return {""};
                return {};
            },
            .draw = draw};
}

// A flag without a value that sets a field of another row. Only that row prints and draws the field.
ScenarioRow alias(ScenarioRow::Group group, std::string flag, std::string excludes, std::string help,
                  void (*set)(Scenario& scenario));

inline Duration between(Random& random, Duration first, Duration last) {
    return first +
           Duration(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>((last - first).count()) + 1)));
}

inline unsigned between(Random& random, unsigned first, unsigned last) {
    return static_cast<unsigned>(random.between(first, last));
}

}  // namespace atp::sim
