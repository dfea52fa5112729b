// SPDX-License-Identifier: Apache-2.0
// Maps numbers to pixels, and selects the ticks of an axis.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace atp::figure {

struct Axis {
    std::string label{};
    bool logarithmic = false;
    bool ticks_at_numbers = false;  // ticks at the given numbers, which must be few, instead of round ones
    // Ends of the axis. Numbers beyond them widen the axis.
    std::optional<double> from{};
    std::optional<double> to{};
};

struct Tick {
    double value = 0;
    std::string text;
};

class Scale {
  public:
    // Covers all numbers. An end that the axis does not set is rounded to the next tick. A logarithmic scale ignores
    // numbers without a logarithm.
    Scale(const Axis& axis, const std::vector<double>& numbers, double first_pixel, double last_pixel);

    [[nodiscard]] double pixel_of(double number) const;
    [[nodiscard]] bool shows(double number) const { return !logarithmic_ || number > 0; }
    [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }

  private:
    void choose_ticks_at(std::vector<double> numbers);
    void choose_linear_ticks(const Axis& axis);
    void choose_logarithmic_ticks();
    [[nodiscard]] double position_of(double number) const;

    bool logarithmic_;
    double from_ = 0;
    double to_ = 1;
    double first_pixel_;
    double last_pixel_;
    std::vector<Tick> ticks_;
};

}  // namespace atp::figure
