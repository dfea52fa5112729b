// SPDX-License-Identifier: Apache-2.0
// A figure of the papers, drawn again: what is claimed, and how to see whether it is so.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "figure/chart.h"
#include "figure/judgement.h"
#include "figure/lab.h"

namespace atp::figure {

// What came out.
struct Drawing {
    std::vector<Chart> charts;
    std::vector<Check> checks;
    std::string skipped;  // why there is nothing of the above

    [[nodiscard]] Verdict verdict() const { return skipped.empty() ? verdict_of(checks) : Verdict::skipped; }
    // In one sentence.
    [[nodiscard]] std::string ours() const { return skipped.empty() ? sentence_of(checks) : skipped; }
};

struct Figure {
    std::string_view id{};
    std::string_view title{};
    std::string_view source{};  // where the claim stands
    std::string_view claim{};
    std::string_view setup{};        // what runs here, and what it leaves out
    std::string_view differences{};  // why ours is not the paper's, where it is not
    Drawing (*draw)(const Lab& lab) = nullptr;
};

struct Failure {
    std::string text{};
    bool interrupted = false;
};

// Draws it with a lab of these options.
[[nodiscard]] tl::expected<Drawing, Failure> draw(const Figure& figure, const LabOptions& options);

}  // namespace atp::figure
