// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "figure/chart_runs.h"

namespace atp::figure {
namespace {

constexpr unsigned seeds_of_full = 5;
constexpr unsigned rounds_of_full = 3;

// Above, processors and not links may decide.
constexpr double most_busy = 0.8;

bool is_measured(const Figure& figure) { return figure.basis <= Basis::kernel; }

bool has_free_inputs(const Figure& figure) {
    return std::ranges::find(figure.inputs, Origin::free, &Input::origin) != figure.inputs.end();
}

unsigned runs_of(const Figure& figure, const LabOptions& options) {
    if (figure.once) return 1;
    if (options.runs != 0) return options.runs;
    if (options.quick) return 1;
    return is_measured(figure) ? rounds_of_full : seeds_of_full;
}

Drawing draw_runs(const Figure& figure, LabOptions options) {
    options.runs = runs_of(figure, options);
    double busiest = 0;
    options.busiest = &busiest;
    std::vector<std::vector<Check>> checks;
    std::vector<std::vector<Chart>> charts;
    Drawing drawing;
    for (options.run = 0; options.run < options.runs; ++options.run) {
        drawing = figure.draw(Lab(options));
        checks.push_back(std::move(drawing.checks));
        charts.push_back(std::move(drawing.charts));
    }
    drawing.checks = merged(checks);
    drawing.charts = merged(charts);
    drawing.gaps = gaps_of(drawing.charts);
    drawing.busiest = busiest;
    if (busiest > 0) {
        drawing.checks.push_back(notified(fmt::format("share of the processors' time in use, most of all trials that "
                                                      "do not fill their links (above {}, they may decide)",
                                                      most_busy),
                                          busiest));
    }
    drawing.basis = basis_of(figure);
    return drawing;
}

std::vector<std::string> turns_of(const Figure& figure, LabOptions options) {
    options.quick = true;
    options.runs = 1;
    std::vector<std::string> turns;
    if (!has_free_inputs(figure)) return turns;
    const Verdict verdict = draw_runs(figure, options).verdict();
    for (const Input& input : figure.inputs) {
        if (input.origin != Origin::free) continue;
        for (const double factor : {0.5, 2.0}) {
            options.varied = {.name = input.name, .factor = factor};
            const Verdict other = draw_runs(figure, options).verdict();
            if (other != verdict) turns.push_back(fmt::format("{} × {}: {}", input.name, factor, to_string(other)));
        }
    }
    return turns;
}

}  // namespace

std::string_view to_string(Origin origin) {
    switch (origin) {
        case Origin::paper: return "paper";
        case Origin::measured: return "measured here";
        case Origin::free: return "free";
        case Origin::from_claim: return "derived from the claim";
    }
    return "unknown";
}

Basis basis_of(const Figure& figure) {
    const bool derived = std::ranges::find(figure.inputs, Origin::from_claim, &Input::origin) != figure.inputs.end();
    return derived ? std::max(figure.basis, Basis::calibrated) : figure.basis;
}

Verdict Drawing::verdict() const {
    if (!skipped.empty()) return Verdict::skipped;
    if (!turns.empty() || busiest > most_busy) return Verdict::undecided;
    const Verdict verdict = verdict_of(checks, basis);
    return verdict == Verdict::holds && !varied ? Verdict::consistent : verdict;
}

tl::expected<Drawing, Failure> draw(const Figure& figure, const LabOptions& options) {
    try {
        Drawing drawing = draw_runs(figure, options);
        if (is_measured(figure)) {
            drawing.varied = !has_free_inputs(figure);
        } else if (!options.quick && drawing.skipped.empty()) {
            drawing.turns = turns_of(figure, options);
        }
        return drawing;
    } catch (const Lacking& lacking) {
        Drawing drawing;
        drawing.skipped = lacking.what();
        drawing.basis = basis_of(figure);
        return drawing;
    } catch (const Interrupted&) {
        return tl::unexpected(Failure{.text = "interrupted", .interrupted = true});
    } catch (const Failed& failed) {
        return tl::unexpected(Failure{.text = failed.what()});
    }
}

}  // namespace atp::figure
