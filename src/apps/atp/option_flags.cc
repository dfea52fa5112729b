// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/option_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "comm/option_table.h"

namespace atp::apps {
namespace {

using comm::OptionRow;
using comm::OptionType;

// Rows that share a flag, in the order of the table.
class FlagRows {
  public:
    explicit FlagRows(std::string_view flag) {
        for (const OptionRow& row : comm::option_table()) {
            if (row.flag == flag) rows_.push_back(&row);
        }
    }
    [[nodiscard]] const std::vector<const OptionRow*>& rows() const { return rows_; }
    [[nodiscard]] bool is_list() const { return rows_.front()->type == OptionType::list; }
    [[nodiscard]] bool is_switch() const { return rows_.front()->type == OptionType::flag && rows_.size() == 1; }
    // The value of the flag lists features to disable.
    [[nodiscard]] bool disables() const { return rows_.front()->type == OptionType::flag && rows_.size() > 1; }

    [[nodiscard]] std::string placeholder() const {
        if (rows_.size() == 1 || disables()) return std::string(rows_.front()->placeholder);
        return fmt::format("{}|{}", joined("|", &OptionRow::placeholder), joined(":", &OptionRow::placeholder));
    }
    [[nodiscard]] std::string accepted() const {
        if (disables()) return joined(", ", &OptionRow::name) + ", with commas between them";
        std::string text;
        for (const OptionRow* row : rows_) text += (text.empty() ? "" : ", ") + comm::accepted_values(*row);
        return rows_.size() == 1 ? text : text + ", or both with a colon between";
    }
    [[nodiscard]] FlagText text() const {
        if (disables()) return {.meaning = "Disable features of the sockets", .values = accepted(), .fallback = "none"};
        const OptionRow& first = *rows_.front();
        if (rows_.size() == 1) {
            FlagText text = flag_text(first.help, is_switch() ? "" : comm::accepted_values(first));
            if (!is_switch()) text.fallback = comm::default_text(first);
            return text;
        }
        FlagText text;
        for (const OptionRow* row : rows_) {
            const FlagText own = flag_text(row->help, comm::accepted_values(*row));
            text.meaning +=
                fmt::format("{}: {} ({}) [{}]\n", row->placeholder, own.meaning, own.values, comm::default_text(*row));
        }
        text.meaning += joined(":", &OptionRow::placeholder) + ": both";
        return text;
    }
    // Values for the completion of a shell, also where others are accepted too.
    [[nodiscard]] std::vector<std::string> words() const {
        std::vector<std::string> words;
        for (const OptionRow* row : rows_) {
            const auto own = flag_text("", comm::accepted_values(*row)).words;
            if (!disables()) std::ranges::copy(own, std::back_inserter(words));
            if (disables()) words.emplace_back(row->name);
            if (row->type == OptionType::multicast) words.insert(words.end(), {"off", "on"});
        }
        return words;
    }

    // Each part of the text belongs to the first of the remaining rows that accepts it.
    bool set(comm::Options& options, std::string_view text) const {
        auto next = rows_.begin();
        for (bool more = true; more;) {
            const std::size_t end = rows_.size() == 1 ? std::string_view::npos : text.find(disables() ? ',' : ':');
            const std::string_view part = text.substr(0, end);
            if (disables()) next = rows_.begin();
            while (next != rows_.end() && !set_one(options, **next, part)) ++next;
            if (next == rows_.end()) return false;
            ++next;
            more = end != std::string_view::npos;
            if (more) text.remove_prefix(end + 1);
        }
        return true;
    }

  private:
    bool set_one(comm::Options& options, const OptionRow& row, std::string_view part) const {
        if (disables()) return part == row.name && comm::set_option(options, row.name, "false");
        return !part.empty() && comm::set_option(options, row.name, part).has_value();
    }
    [[nodiscard]] std::string joined(std::string_view separator, std::string_view OptionRow::*member) const {
        std::string text;
        for (const OptionRow* row : rows_) {
            if (!text.empty()) text += separator;
            text += row->*member;
        }
        return text;
    }

    std::vector<const OptionRow*> rows_;
};

std::vector<std::string_view> flags_of_table() {
    std::vector<std::string_view> flags;
    for (const OptionRow& row : comm::option_table()) {
        if (!row.flag.empty() && std::ranges::find(flags, row.flag) == flags.end()) flags.push_back(row.flag);
    }
    return flags;
}

}  // namespace

CLI::Option* add_option_flag(Flags& flags, std::string_view flag, comm::Options& options) {
    const FlagRows rows(flag);
    const std::string name(flag);
    CLI::Option* option = nullptr;
    if (rows.is_switch()) {
        option = flags.call(
            name, [&options, rows] { static_cast<void>(rows.set(options, "true")); }, "");
    } else if (rows.is_list()) {
        const auto& field = std::get<std::vector<std::string> comm::Options::*>(rows.rows().front()->field);
        const auto parse = [](std::string_view text) {
            return text.empty() ? std::nullopt : std::optional<std::string>(text);
        };
        option = flags.appended(name, options.*field, rows.placeholder(), parse, rows.accepted(), "");
    } else {
        const auto set = [&options, rows](std::string_view text) { return rows.set(options, text); };
        option = flags.accepted(name, rows.placeholder(), set, rows.accepted(), "");
    }
    FlagText text = rows.text();
    if (!rows.is_switch()) text.words = rows.words();
    flags.describe(option, std::move(text));
    return option;
}

void add_option_flags(Flags& flags, comm::Options& options, const std::vector<std::string_view>& others) {
    for (const std::string_view flag : flags_of_table()) {
        if (std::ranges::find(others, flag) == others.end()) add_option_flag(flags, flag, options);
    }
}

std::vector<std::string> option_arguments(const comm::Options& options) {
    const comm::Options defaults;
    std::vector<std::string> arguments;
    for (const std::string_view flag : flags_of_table()) {
        const FlagRows rows(flag);
        std::string value;
        for (const OptionRow* row : rows.rows()) {
            const std::string text = comm::option_text(options, *row);
            if (text == comm::option_text(defaults, *row)) continue;
            if (!value.empty()) value += rows.disables() ? "," : ":";
            value += rows.disables() ? std::string(row->name) : text;
        }
        if (value.empty()) continue;
        if (rows.is_list()) {
            const auto& field = std::get<std::vector<std::string> comm::Options::*>(rows.rows().front()->field);
            for (const std::string& element : options.*field)
                arguments.insert(arguments.end(), {std::string(flag), element});
            continue;
        }
        arguments.emplace_back(flag);
        if (!rows.is_switch()) arguments.push_back(value);
    }
    return arguments;
}

}  // namespace atp::apps
