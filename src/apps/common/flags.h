// SPDX-License-Identifier: Apache-2.0
// Flags whose errors name the flag, the value and the accepted values.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/common/command_text.h"
#include "base/text.h"
#include "base/units.h"
#include "wire/address.h"

namespace atp::apps {

// Adds flags to one command, under one heading of its help. Their targets must outlive the command's parsing.
//
// A help begins with what the flag does, and ends with its default in brackets. It does not repeat the accepted values,
// which follow it in parentheses.
class Flags {
  public:
    Flags(Command& command, std::string heading) : command_(command), heading_(std::move(heading)) {}

    // `read` takes the text of the flag, and returns false if it does not accept the text.
    template <class Read>
    CLI::Option* accepted(const std::string& flag, std::string_view placeholder, Read read, std::string_view accepted,
                          const std::string& help) {
        const auto read_or_refuse = [flag, read = std::move(read),
                                     accepted = std::string(accepted)](const std::string& text) {
            if (!read(std::string_view(text))) refuse(flag, text, accepted);
        };
        CLI::Option* const option = command_.add_option_function<std::string>(flag, read_or_refuse);
        return described(option->type_name(std::string(placeholder)), help, accepted);
    }

    // As accepted(), but the flag may be repeated, and `read` gets each value.
    template <class Read>
    CLI::Option* accepted_each(const std::string& flag, std::string_view placeholder, Read read,
                               std::string_view accepted, const std::string& help) {
        const auto read_or_refuse = [flag, read = std::move(read),
                                     accepted = std::string(accepted)](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
                if (!read(std::string_view(text))) refuse(flag, text, accepted);
            }
        };
        CLI::Option* const option = command_.add_option_function<std::vector<std::string>>(flag, read_or_refuse);
        option->expected(1)->take_all()->type_name(std::string(placeholder));
        return described(option, help, accepted);
    }

    // `parse` converts a text to an optional value.
    template <class T, class Parse>
    CLI::Option* parsed(const std::string& flag, T& target, std::string_view placeholder, Parse parse,
                        std::string_view accepted_values, const std::string& help) {
        const auto read = [&target, parse](std::string_view text) {
            auto value = parse(text);
            if (!value) return false;
            if constexpr (std::is_same_v<T, decltype(value)>) {
                target = std::move(value);
            } else {
                target = *std::move(value);
            }
            return true;
        };
        return accepted(flag, placeholder, read, accepted_values, help);
    }

    // As parsed(), but the flag may be repeated, and each value is appended.
    template <class Container, class Parse>
    CLI::Option* appended(const std::string& flag, Container& target, std::string_view placeholder, Parse parse,
                          std::string_view accepted_values, const std::string& help) {
        const auto read = [&target, parse](std::string_view text) {
            auto value = parse(text);
            if (!value) return false;
            target.push_back(*std::move(value));
            return true;
        };
        return accepted_each(flag, placeholder, read, accepted_values, help);
    }

    template <class T>
    CLI::Option* number(const std::string& flag, T& target, std::uint64_t least, std::uint64_t most,
                        const std::string& help) {
        const auto parse = [least, most](std::string_view text) -> std::optional<T> {
            const auto value = parse_whole(text, least, most);
            return value ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;
        };
        return parsed(flag, target, "N", parse, whole_forms(least, most), help);
    }

    CLI::Option* share(const std::string& flag, double& target, const std::string& help) {
        const auto parse = [](std::string_view text) { return parse_real(text, 0, 1); };
        return parsed(flag, target, "P", parse, "a number from 0 to 1", help);
    }

    CLI::Option* flag(const std::string& flag, bool& target, const std::string& help) {
        return described(command_.add_flag(flag, target), help, "");
    }
    CLI::Option* call(const std::string& flag, std::function<void()> then, const std::string& help) {
        return described(command_.add_flag_callback(flag, std::move(then)), help, "");
    }

    // Accepts any text that is not empty.
    CLI::Option* text(const std::string& flag, std::string& target, std::string_view placeholder,
                      std::string_view accepted_values, const std::string& help) {
        const auto parse = [](std::string_view text) {
            return text.empty() ? std::nullopt : std::optional<std::string>(text);
        };
        return parsed(flag, target, placeholder, parse, accepted_values, help);
    }

    // An address that a resolver can find; port 0 leaves the choice to the kernel.
    CLI::Option* address(const std::string& flag, std::string& target, const std::string& help) {
        const auto parse = [](std::string_view text) {
            return wire::split_host_port(text) ? std::optional<std::string>(text) : std::nullopt;
        };
        return parsed(flag, target, "ADDRESS", parse, address_forms, help);
    }

    // Replaces what the help says, which otherwise follows from the accepted values.
    void describe(const CLI::Option* option, FlagText text) { command_.describe(option, std::move(text)); }

  private:
    [[noreturn]] static void refuse(const std::string& flag, const std::string& text, const std::string& accepted) {
        if (text.empty()) throw CLI::ValidationError(fmt::format("{}: empty value; expected {}", flag, accepted));
        throw CLI::ValidationError(fmt::format("{}: '{}' is {}; use {}", flag, printable(text),
                                               is_too_large(text) ? "too large" : "invalid", accepted));
    }
    CLI::Option* described(CLI::Option* option, std::string_view help, std::string_view accepted) {
        command_.describe(option, flag_text(help, accepted));
        return option->group(heading_);
    }

    Command& command_;
    std::string heading_;
};

}  // namespace atp::apps
