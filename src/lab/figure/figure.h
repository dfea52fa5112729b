// SPDX-License-Identifier: Apache-2.0
// A reproduced figure of the papers: the claim, and the checks of the claim.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "figure/chart.h"
#include "figure/judgement.h"
#include "figure/lab.h"

namespace atp::figure {

// Result of a figure.
struct Drawing {
    std::vector<Chart> charts;
    std::vector<Check> checks;
    std::string skipped;  // reason for omitting charts and checks; empty: not skipped

    [[nodiscard]] Verdict verdict() const { return skipped.empty() ? verdict_of(checks) : Verdict::skipped; }
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
    Drawing (*draw)(const Lab& lab) = nullptr;
};

struct Failure {
    std::string text{};
    bool interrupted = false;
};

// Draws the figure with a Lab of these options.
[[nodiscard]] tl::expected<Drawing, Failure> draw(const Figure& figure, const LabOptions& options);

}  // namespace atp::figure
