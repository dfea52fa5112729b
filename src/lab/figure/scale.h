// SPDX-License-Identifier: Apache-2.0
// From numbers to pixels, and the numbers at which an axis has its ticks.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace atp::figure {

struct Axis {
    std::string label{};
    bool logarithmic = false;
    bool ticks_at_numbers = false;  // of which there are few, in place of round ones
    // Shown whatever the numbers are, if given. Numbers beyond them widen the axis.
    std::optional<double> from{};
    std::optional<double> to{};
};

struct Tick {
    double value = 0;
    std::string text;
};

class Scale {
  public:
    // Wide enough for the numbers, and to the next tick where the axis says nothing. What has no logarithm is left out
    // of a logarithmic one.
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
