// SPDX-License-Identifier: Apache-2.0
// What is claimed, as numbers that are to lie within bounds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atp::figure {

// One statement: what the number is, in words, and what it has to be.
struct Check {
    std::string what;
    double value = 0;
    std::optional<double> least{};
    std::optional<double> most{};

    [[nodiscard]] bool holds() const;
    [[nodiscard]] std::string value_text() const;
    [[nodiscard]] std::string bar_text() const;  // ">= 1.2"; empty where nothing is demanded
};

[[nodiscard]] Check at_least(double bar, std::string what, double value);
[[nodiscard]] Check at_most(double bar, std::string what, double value);
[[nodiscard]] Check between(double least, double most, std::string what, double value);
// Told, not judged.
[[nodiscard]] Check told(std::string what, double value);

enum class Verdict { holds, differs, skipped };

[[nodiscard]] std::string_view to_string(Verdict verdict);
[[nodiscard]] Verdict verdict_of(std::span<const Check> checks);
// All of them in one sentence.
[[nodiscard]] std::string sentence_of(std::span<const Check> checks);

}  // namespace atp::figure
