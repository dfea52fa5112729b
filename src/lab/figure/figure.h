// SPDX-License-Identifier: Apache-2.0
// A reproduced figure of the papers: the claim, and the checks of the claim.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "figure/chart.h"
#include "figure/judgement.h"
#include "figure/lab.h"

namespace atp::figure {

// An input of a figure that decides its numbers, and where its value comes from.
enum class Origin {
    paper,      // a constant of the papers' test beds
    measured,   // here, and apart from the claim
    free,       // neither paper nor measurement says its value: varied by a factor of two both ways
    from_claim  // computed from the claim or from its experiment, or chosen because the claim then comes out
};

[[nodiscard]] std::string_view to_string(Origin origin);

struct Input {
    std::string_view name;  // of a free input: as Lab::free() receives it
    Origin origin = Origin::paper;
    std::string_view source;
};

// Result of a figure.
struct Drawing {
    std::vector<Chart> charts;
    std::vector<Check> checks;
    std::string skipped{};             // reason for omitting charts and checks; empty: not skipped
    Basis basis = Basis::simulator;    // draw() sets the figure's
    std::vector<std::string> turns{};  // values of free inputs with another verdict, and this verdict
    std::vector<std::string> gaps{};   // where simulation and measurement differ (chart_runs.h)
    double busiest = 0;                // largest share of the processors' time in a measurement
    bool varied = true;                // all free inputs were; a measured figure has no time for that

    [[nodiscard]] Verdict verdict() const;
    // In one sentence.
    [[nodiscard]] std::string ours() const { return skipped.empty() ? sentence_of(checks) : skipped; }
};

struct Figure {
    std::string_view id{};
    std::string_view title{};
    std::string_view source{};  // position of the claim in the paper
    std::string_view claim{};
    std::string_view setup{};        // the runs, and parts of the paper's setup that are omitted
    std::string_view differences{};  // reasons for differences from the paper, if any
    Basis basis = Basis::simulator;  // of its runs; basis_of() takes the inputs into account
    std::span<const Input> inputs{};
    bool once = false;     // one run: the seed of the Lab changes nothing, or the program that it calls has seeds
    unsigned seconds = 0;  // that a measured figure takes, approximately
    Drawing (*draw)(const Lab& lab) = nullptr;
};

// One input that is derived from the claim makes a basis calibrated.
[[nodiscard]] Basis basis_of(const Figure& figure);

struct Failure {
    std::string text{};
    bool interrupted = false;
};

// Draws the figure with several seeds (LabOptions::runs), of which the charts show the first. Unless the options are
// quick, it then varies each free input over the quick points, and compares the verdicts.
[[nodiscard]] tl::expected<Drawing, Failure> draw(const Figure& figure, const LabOptions& options);

}  // namespace atp::figure
