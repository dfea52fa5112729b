// SPDX-License-Identifier: Apache-2.0
// Claims as numbers with bounds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atp::figure {

// One statement: the meaning of a number, its value and its bounds.
struct Check {
    std::string what;
    double value = 0;
    std::optional<double> least{};
    std::optional<double> most{};

    [[nodiscard]] bool holds() const;
    [[nodiscard]] std::string value_text() const;
    [[nodiscard]] std::string bar_text() const;  // ">= 1.2"; empty: no bounds
};

[[nodiscard]] Check at_least(double bar, std::string what, double value);
[[nodiscard]] Check at_most(double bar, std::string what, double value);
[[nodiscard]] Check between(double least, double most, std::string what, double value);
// A value without bounds: reported only.
[[nodiscard]] Check notified(std::string what, double value);

enum class Verdict { holds, differs, skipped };

[[nodiscard]] std::string_view to_string(Verdict verdict);
[[nodiscard]] Verdict verdict_of(std::span<const Check> checks);
// All checks in one sentence.
[[nodiscard]] std::string sentence_of(std::span<const Check> checks);

}  // namespace atp::figure
