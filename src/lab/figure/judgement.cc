// SPDX-License-Identifier: Apache-2.0
#include "figure/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace atp::figure {
namespace {

constexpr double percent = 100;
constexpr double knee_factor = 2;
constexpr double most_variation = 0.2;
constexpr double collapsed_share = 0.5;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Three digits for factors; all digits for counts.
std::string short_text(double number) {
    if (number == std::round(number) && std::abs(number) < 1e15) return fmt::format("{:.0f}", number);
    return std::abs(number) >= 100 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

Check shape(std::string expected, std::string what, double value, double least, double most) {
    return {.what = std::move(what),
            .expected = std::move(expected),
            .value = value,
            .low = value,
            .high = value,
            .least = least,
            .most = most};
}

// The effect keeps its sign: what is above 1 in the paper is above 1 here.
Check near(double paper, double least, double most, std::string what, double value) {
    if (paper > 1) least = std::max(least, 1.0);
    if (paper > 0 && paper < 1) most = std::min(most, 1.0);
    Check check = shape(fmt::format("{}, from {} to {}", short_text(paper), short_text(least), short_text(most)),
                        std::move(what), value, least, most);
    check.paper = paper;
    check.relative = paper != 0;
    check.open = paper != 0;
    return check;
}

Check more_than(double least, std::string expected, std::string what, double value) {
    Check check = shape(std::move(expected), std::move(what), value, least, std::numeric_limits<double>::infinity());
    check.open = true;
    return check;
}

// The smallest ratio of a number to the next one.
double smallest_ratio(std::span<const double> numbers) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < numbers.size(); ++i) {
        const double ratio = numbers[i - 1] / numbers[i];
        if (std::isnan(ratio)) return nan;
        least = std::min(least, ratio);
    }
    return least;
}

double mean_of(std::span<const double> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

}  // namespace

std::string_view to_string(Basis basis) {
    switch (basis) {
        case Basis::sockets: return "sockets";
        case Basis::kernel: return "kernel";
        case Basis::simulator: return "simulator";
        case Basis::calibrated: return "calibrated";
        case Basis::arithmetic: return "arithmetic";
    }
    return "unknown";
}

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::holds: return "holds";
        case Verdict::consistent: return "consistent";
        case Verdict::differs: return "differs";
        case Verdict::undecided: return "undecided";
        case Verdict::skipped: return "skipped";
    }
    return "unknown";
}

Verdict Check::verdict() const {
    if (std::isnan(low) || std::isnan(high)) return Verdict::differs;
    const bool inside = open ? low > least && high < most : low >= least && high <= most;
    if (inside) return Verdict::holds;
    return high < least || low > most ? Verdict::differs : Verdict::undecided;
}

std::optional<double> Check::deviation() const {
    if (!paper) return std::nullopt;
    return relative ? value / *paper - 1 : value - *paper;
}

std::string Check::value_text() const {
    if (low == high || std::isnan(value)) return short_text(value);
    return fmt::format("{} ({} to {})", short_text(value), short_text(low), short_text(high));
}

std::string Check::deviation_text() const {
    const auto deviates = deviation();
    if (!deviates) return "";
    return relative ? fmt::format("{:+.1f} %", *deviates * percent) : fmt::format("{:+.3f}", *deviates);
}

Check number(double paper, double tolerance, std::string what, double value) {
    return near(paper, paper / (1 + tolerance), paper * (1 + tolerance), std::move(what), value);
}

Check equal(double paper, std::string what, double value, double band) {
    return near(paper, paper - band, paper + band, std::move(what), value);
}

Check notified(std::string what, double value) {
    return {.what = std::move(what), .value = value, .low = value, .high = value};
}

Check monotone(Trend trend, std::string what, std::span<const double> values) {
    std::vector<double> falling(values.begin(), values.end());
    if (trend == Trend::rises) std::ranges::reverse(falling);
    return shape(trend == Trend::rises ? "rises with each step" : "falls with each step", std::move(what),
                 smallest_ratio(falling), 1, std::numeric_limits<double>::infinity());
}

Check flat(std::string what, std::span<const double> values) {
    const auto [least, most] = std::ranges::minmax(values);
    return shape(fmt::format("flat: at most {}", 1 + equality), std::move(what), most / least, 1, 1 + equality);
}

Check order(std::string what, std::span<const double> falling, double gap) {
    return more_than(gap, fmt::format("in this order: above {}", short_text(gap)), std::move(what),
                     smallest_ratio(falling));
}

Check knee(double stated, std::string what, std::span<const double> x, std::span<const double> y) {
    const double plateau = std::ranges::min(y);
    const auto first = std::ranges::find_if(y, [&](double one) { return one <= plateau * (1 + equality); });
    Check check = shape(fmt::format("knee within a factor of 2 of {}", short_text(stated)), std::move(what),
                        x[static_cast<std::size_t>(first - y.begin())], stated / knee_factor, stated * knee_factor);
    check.paper = stated;
    return check;
}

Check stable(std::string what, std::span<const double> samples) {
    const double mean = mean_of(samples);
    double squares = 0;
    for (const double sample : samples) squares += (sample - mean) * (sample - mean);
    const double deviates = std::sqrt(squares / static_cast<double>(samples.size()));
    return shape(fmt::format("stable: variation below {}", most_variation), std::move(what), deviates / mean, 0,
                 most_variation);
}

Check collapse(double level, std::string what, std::span<const double> samples) {
    const auto low = std::ranges::count_if(samples, [&](double sample) { return sample < level; });
    return shape(fmt::format("below {} for half of the time", short_text(level)), std::move(what),
                 static_cast<double>(low) / static_cast<double>(samples.size()), collapsed_share, 1);
}

Check crossover(std::string what, std::span<const double> before, std::span<const double> behind) {
    double worst = std::numeric_limits<double>::infinity();
    for (const double ratio : before) worst = std::min(worst, ratio);
    for (const double ratio : behind) worst = std::min(worst, 1 / ratio);
    return more_than(1, "crosses at the stated point", std::move(what), worst);
}

std::vector<Check> merged(const std::vector<std::vector<Check>>& runs) {
    std::vector<Check> checks = runs.front();
    for (std::size_t i = 0; i < checks.size(); ++i) {
        std::vector<double> values;
        for (const std::vector<Check>& run : runs) {
            checks[i].low = std::min(checks[i].low, run[i].low);
            checks[i].high = std::max(checks[i].high, run[i].high);
            values.push_back(run[i].value);
        }
        // A run without a value leaves none to the others.
        if (std::ranges::any_of(values, [](double one) { return std::isnan(one); })) {
            checks[i].value = checks[i].low = checks[i].high = nan;
            continue;
        }
        std::ranges::sort(values);
        checks[i].value = values[values.size() / 2];
    }
    return checks;
}

Verdict verdict_of(std::span<const Check> checks, Basis basis) {
    const auto any = [&](Verdict verdict) {
        return std::ranges::any_of(checks,
                                   [&](const Check& check) { return check.assessed() && check.verdict() == verdict; });
    };
    if (any(Verdict::differs)) return Verdict::differs;
    if (any(Verdict::undecided) || std::ranges::none_of(checks, &Check::assessed)) return Verdict::undecided;
    return basis < Basis::calibrated ? Verdict::holds : Verdict::consistent;
}

std::string sentence_of(std::span<const Check> checks) {
    std::string sentence;
    for (const Check& check : checks) {
        sentence += fmt::format("{}{}: {}", sentence.empty() ? "" : "; ", check.what, check.value_text());
        if (!check.assessed() || check.verdict() == Verdict::holds) continue;
        sentence += fmt::format(" ({}: {})", check.expected, to_string(check.verdict()));
    }
    return sentence;
}

}  // namespace atp::figure
