// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace atp::figure {
namespace {

constexpr unsigned runs_of_full = 5;

Drawing draw_runs(const Figure& figure, LabOptions options) {
    const unsigned runs = figure.once ? 1 : options.runs != 0 ? options.runs : options.quick ? 1 : runs_of_full;
    std::vector<std::vector<Check>> checks;
    Drawing first;
    for (unsigned run = 0; run < runs; ++run, ++options.seed) {
        Drawing drawing = figure.draw(Lab(options));
        checks.push_back(drawing.checks);
        if (run == 0) first = std::move(drawing);
    }
    first.checks = merged(checks);
    first.basis = basis_of(figure);
    return first;
}

std::vector<std::string> turns_of(const Figure& figure, LabOptions options) {
    options.quick = true;
    options.runs = 1;
    std::vector<std::string> turns;
    if (std::ranges::find(figure.inputs, Origin::free, &Input::origin) == figure.inputs.end()) return turns;
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
    return turns.empty() ? verdict_of(checks, basis) : Verdict::undecided;
}

tl::expected<Drawing, Failure> draw(const Figure& figure, const LabOptions& options) {
    try {
        Drawing drawing = draw_runs(figure, options);
        if (!options.quick && drawing.skipped.empty()) drawing.turns = turns_of(figure, options);
        return drawing;
    } catch (const Interrupted&) {
        return tl::unexpected(Failure{.text = "interrupted", .interrupted = true});
    } catch (const Failed& failed) {
        return tl::unexpected(Failure{.text = failed.what()});
    }
}

}  // namespace atp::figure
