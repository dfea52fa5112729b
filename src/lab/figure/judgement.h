// SPDX-License-Identifier: Apache-2.0
// Claims as numbers, and what may be said about them. A check compares our number with an interval that follows from
// the paper's words and from no result of ours.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::figure {

// What a figure rests on, from strong to weak.
enum class Basis { sockets, kernel, simulator, calibrated, arithmetic };

enum class Verdict { holds, consistent, differs, undecided, skipped };

[[nodiscard]] std::string_view to_string(Basis basis);
[[nodiscard]] std::string_view to_string(Verdict verdict);

// One statement: the meaning of a number, its value, and the interval in which the paper's words are right.
struct Check {
    std::string what;
    std::string expected{};         // in words; empty: not judged
    std::optional<double> paper{};  // the number of the paper, or of the claim
    bool relative = true;           // the deviation is a share of the paper's number, otherwise a difference
    double value = 0;               // median of the runs
    double low = value;             // least and greatest of the runs
    double high = value;
    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();
    bool open = false;  // at an end of the interval, the check neither holds nor differs

    [[nodiscard]] bool assessed() const { return !expected.empty(); }
    // holds, differs or undecided; a number that is not judged holds. NaN differs.
    [[nodiscard]] Verdict verdict() const;
    [[nodiscard]] std::optional<double> deviation() const;
    [[nodiscard]] std::string value_text() const;      // with the interval of the runs, if they differ
    [[nodiscard]] std::string deviation_text() const;  // "+3.2 %"; empty: no number to deviate from
};

// Tolerances, chosen by the kind of number and before any run.
inline constexpr double same_ratio = 0.15;      // both sides measure one ratio, and the inputs are the test bed's
inline constexpr double other_hardware = 0.25;  // this machine's hardware decides
inline constexpr double by_magnitude = 0.5;     // growth of counts over orders of magnitude
inline constexpr double equality = 0.05;        // "equal", "no loss", "near": an absolute band

// Ours is within the tolerance of the paper's number, by ratio and on both sides. If the number is a gain or a loss
// relative to 1, ours is on the same side of 1, however small the difference.
[[nodiscard]] Check number(double paper, double tolerance, std::string what, double value);
// Ours is within an absolute band around the paper's number, and on the same side of 1.
[[nodiscard]] Check equal(double paper, std::string what, double value, double band = equality);
// A value without a counterpart in the paper. It is no result of the reproduction.
[[nodiscard]] Check notified(std::string what, double value);

// Shapes. Numbers are positive.
enum class Trend { rises, falls };
// No step goes against the trend. Value: the worst step, as a ratio of neighbours.
[[nodiscard]] Check monotone(Trend trend, std::string what, std::span<const double> values);
// Value: the greatest number, relative to the least.
[[nodiscard]] Check flat(std::string what, std::span<const double> values);
// Each number is greater than the next. Value: the smallest ratio of neighbours. With `gap` above 1, the ratio has to
// exceed it.
[[nodiscard]] Check order(std::string what, std::span<const double> falling, double gap = 1);
// The first point within 5 % of the plateau, which is the least of y, is within a factor of two of the stated one.
[[nodiscard]] Check knee(double stated, std::string what, std::span<const double> x, std::span<const double> y);
// The coefficient of variation of the samples is below 0.2.
[[nodiscard]] Check stable(std::string what, std::span<const double> samples);
// The samples are below a stated level for at least half of the time. Value: share of the time.
[[nodiscard]] Check collapse(double level, std::string what, std::span<const double> samples);
// The difference has one sign before the stated point and the other sign behind it: each ratio of `before` is above 1,
// and each of `behind` below. Value: the worst ratio, above 1 if it is on its side.
[[nodiscard]] Check crossover(std::string what, std::span<const double> before, std::span<const double> behind);

// The same checks of several runs as one: the median, and the interval that they span.
[[nodiscard]] std::vector<Check> merged(const std::vector<std::vector<Check>>& runs);

// At best holds with a basis that measures or simulates, and consistent with a weaker one.
[[nodiscard]] Verdict verdict_of(std::span<const Check> checks, Basis basis);
// All checks in one sentence.
[[nodiscard]] std::string sentence_of(std::span<const Check> checks);

}  // namespace atp::figure
