// SPDX-License-Identifier: Apache-2.0
#include "figure/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atp::figure {
namespace {

constexpr double ticks_required = 5;
constexpr double decades_most = 9;  // with one tick each
// Prevents the loss of the last tick by rounding.
constexpr double slack = 1e-9;

// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
double round_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= least * (1 - slack)) return factor * power;
    }
    return 10 * power;
}

std::string tick_text(double value) {
    if (value != 0 && (std::abs(value) >= 1e6 || std::abs(value) < 1e-4)) return fmt::format("{:g}", value);
    return fmt::format("{}", std::round(value * 1e6) / 1e6 + 0.0);  // + 0.0 avoids -0
}

}  // namespace

Scale::Scale(const Axis& axis, const std::vector<double>& numbers, double first_pixel, double last_pixel)
    : logarithmic_(axis.logarithmic), first_pixel_(first_pixel), last_pixel_(last_pixel) {
    std::vector<double> shown;
    std::ranges::copy_if(numbers, std::back_inserter(shown), [this](double n) { return std::isfinite(n) && shows(n); });
    for (const std::optional<double>& end : {axis.from, axis.to}) {
        if (end) shown.push_back(*end);
    }
    if (shown.empty()) shown = {1};
    std::tie(from_, to_) = [&] {
        const auto [least, most] = std::ranges::minmax(shown);
        return std::pair(least, most);
    }();
    if (axis.ticks_at_numbers) {
        choose_ticks_at(shown);
    } else if (logarithmic_) {
        choose_logarithmic_ticks();
    } else {
        choose_linear_ticks(axis);
    }
}

void Scale::choose_ticks_at(std::vector<double> numbers) {
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (from_ == to_) to_ = 2 * from_;
    for (const double number : numbers) ticks_.push_back({.value = number, .text = tick_text(number)});
}

void Scale::choose_linear_ticks(const Axis& axis) {
    if (from_ == to_) to_ = from_ + std::max(1.0, std::abs(from_));
    const double step = round_step((to_ - from_) / ticks_required);
    if (!axis.from || from_ < *axis.from) from_ = std::floor(from_ / step + slack) * step;
    if (!axis.to || to_ > *axis.to) to_ = std::ceil(to_ / step - slack) * step;
    const double first = std::ceil(from_ / step - slack);
    const double last = std::floor(to_ / step + slack);
    for (double i = first; i <= last; ++i) ticks_.push_back({.value = i * step, .text = tick_text(i * step)});
}

void Scale::choose_logarithmic_ticks() {
    if (from_ == to_) to_ = 10 * from_;
    // With few powers of ten there is room for more ticks.
    const double decades = std::log10(to_ / from_);
    const bool few = decades < 2;
    const double step = std::max(1.0, std::ceil(decades / decades_most));
    for (double power = std::floor(std::log10(from_)); power <= std::ceil(std::log10(to_)); power += step) {
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double value = factor * std::pow(10, power);
            const bool inside = value >= from_ * (1 - slack) && value <= to_ * (1 + slack);
            if (inside && (few || factor == 1)) ticks_.push_back({.value = value, .text = tick_text(value)});
        }
    }
}

double Scale::position_of(double number) const { return logarithmic_ ? std::log10(number) : number; }

double Scale::pixel_of(double number) const {
    const double share = (position_of(number) - position_of(from_)) / (position_of(to_) - position_of(from_));
    return first_pixel_ + share * (last_pixel_ - first_pixel_);
}

}  // namespace atp::figure
