// SPDX-License-Identifier: Apache-2.0
#include "figure/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace atp::figure {
namespace {

// Three digits for factors; all digits for counts.
std::string short_text(double number) {
    if (number == std::round(number) && std::abs(number) < 1e15) return fmt::format("{:.0f}", number);
    return std::abs(number) >= 100 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

}  // namespace

// NaN is within no bounds.
bool Check::holds() const {
    const bool enough = !least || value >= *least;
    const bool not_too_much = !most || value <= *most;
    return enough && not_too_much && !std::isnan(value);
}

std::string Check::value_text() const { return short_text(value); }

std::string Check::bar_text() const {
    if (least && most && *least == *most) return fmt::format("exactly {}", short_text(*least));
    if (least && most) return fmt::format("{} to {}", short_text(*least), short_text(*most));
    if (least) return fmt::format("at least {}", short_text(*least));
    return most ? fmt::format("at most {}", short_text(*most)) : "";
}

Check at_least(double bar, std::string what, double value) {
    return {.what = std::move(what), .value = value, .least = bar};
}

Check at_most(double bar, std::string what, double value) {
    return {.what = std::move(what), .value = value, .most = bar};
}

Check between(double least, double most, std::string what, double value) {
    return {.what = std::move(what), .value = value, .least = least, .most = most};
}

Check notified(std::string what, double value) { return {.what = std::move(what), .value = value}; }

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::holds: return "holds";
        case Verdict::differs: return "differs";
        case Verdict::skipped: return "skipped";
    }
    return "unknown";
}

Verdict verdict_of(std::span<const Check> checks) {
    return std::ranges::all_of(checks, &Check::holds) ? Verdict::holds : Verdict::differs;
}

std::string sentence_of(std::span<const Check> checks) {
    std::string sentence;
    for (const Check& check : checks) {
        sentence += fmt::format("{}{}: {}", sentence.empty() ? "" : "; ", check.what, check.value_text());
        if (!check.holds()) sentence += fmt::format(" (not {})", check.bar_text());
    }
    return sentence;
}

}  // namespace atp::figure
