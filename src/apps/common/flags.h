// SPDX-License-Identifier: Apache-2.0
// Flags whose errors name the flag, the value and the accepted values.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace atp::apps {

// Adds flags to one command, under one heading of its help. Their targets must outlive the command's parsing.
class Flags {
  public:
    Flags(CLI::App& command, std::string heading) : command_(command), heading_(std::move(heading)) {}

    // `parse` converts a text to an optional value.
    template <class T, class Parse>
    CLI::Option* parsed(const std::string& flag, T& target, std::string_view placeholder, Parse parse,
                        std::string_view accepted, const std::string& help) {
        const auto read = [flag, &target, parse, accepted = std::string(accepted)](const std::string& text) {
            auto value = parse(std::string_view(text));
            if (!value) refuse(flag, text, accepted);
            if constexpr (std::is_same_v<T, decltype(value)>) {
                target = std::move(value);
            } else {
                target = *std::move(value);
            }
        };
        return decorate(command_.add_option_function<std::string>(flag, read, help), placeholder);
    }

    // As parsed(), but the flag may be repeated, and each value is appended.
    template <class Container, class Parse>
    CLI::Option* appended(const std::string& flag, Container& target, std::string_view placeholder, Parse parse,
                          std::string_view accepted, const std::string& help) {
        const auto read = [flag, &target, parse,
                           accepted = std::string(accepted)](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
                auto value = parse(std::string_view(text));
                if (!value) refuse(flag, text, accepted);
                target.push_back(*std::move(value));
            }
        };
        return decorate(
            command_.add_option_function<std::vector<std::string>>(flag, read, help)->expected(1)->take_all(),
            placeholder);
    }

    template <class T>
    CLI::Option* number(const std::string& flag, T& target, std::uint64_t least, std::uint64_t most,
                        const std::string& help) {
        const auto parse = [least, most](std::string_view text) -> std::optional<T> {
            std::uint64_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return {};
            return static_cast<T>(value);
        };
        return parsed(flag, target, "N", parse, fmt::format("a whole number from {} to {}", least, most), help);
    }

    CLI::Option* share(const std::string& flag, double& target, const std::string& help) {
        const auto parse = [](std::string_view text) -> std::optional<double> {
            double value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 1)) return {};
            return value;
        };
        return parsed(flag, target, "P", parse, "a number from 0 to 1", help);
    }

    CLI::Option* flag(const std::string& flag, bool& target, const std::string& help) {
        return command_.add_flag(flag, target, help)->group(heading_);
    }
    CLI::Option* call(const std::string& flag, std::function<void()> then, const std::string& help) {
        return command_.add_flag_callback(flag, std::move(then), help)->group(heading_);
    }

    // Accepts any text that is not empty.
    CLI::Option* text(const std::string& flag, std::string& target, std::string_view placeholder,
                      const std::string& help) {
        const auto parse = [](std::string_view text) {
            return text.empty() ? std::nullopt : std::optional<std::string>(text);
        };
        return parsed(flag, target, placeholder, parse, "something that is not empty", help);
    }

  private:
    [[noreturn]] static void refuse(const std::string& flag, const std::string& text, const std::string& accepted) {
        throw CLI::ValidationError(fmt::format("{}: '{}' is not accepted; give {}", flag, text, accepted));
    }
    CLI::Option* decorate(CLI::Option* option, std::string_view placeholder) const {
        return option->type_name(std::string(placeholder))->group(heading_);
    }

    CLI::App& command_;
    std::string heading_;
};

}  // namespace atp::apps
