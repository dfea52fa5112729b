// SPDX-License-Identifier: Apache-2.0
// Checks of claims that a simulated figure shares with that on real packets.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "figure/chart.h"
#include "figure/judgement.h"

namespace atp::figure {

// The speeds of two jobs side by side, in one unit.
struct PairSpeeds {
    double first = 0;
    double second = 0;

    [[nodiscard]] double slower() const { return std::min(first, second); }
    [[nodiscard]] double faster() const { return std::max(first, second); }
};
// Of the first two bars of a category.
[[nodiscard]] PairSpeeds pair_of(const BarChart& chart, std::size_t category);

// ATP, servers on all hosts, and a ring. dumbbell.cc
[[nodiscard]] std::vector<Check> checks_of_fig12(const PairSpeeds& atp, const PairSpeeds& servers,
                                                 const std::string& servers_name, const PairSpeeds& ring,
                                                 const std::string& ring_name);

// Relative to alone: jobs of 3 and 3 workers, of 5 and 2, and VGG16 and ResNet50. jobs.cc
[[nodiscard]] std::vector<Check> checks_of_fig20(const std::array<PairSpeeds, 3>& pairs, double two_to_five);

// The first category is ATP, and the two others are its peers. jobs.cc
[[nodiscard]] std::vector<Check> checks_of_draft_fig10(const BarChart& same, const BarChart& mixed);

struct TableRow {
    const char* model;
    double ideal;  // images/s of eight GPUs
    double nccl;
    double switchml;
};
inline constexpr TableRow rows_of_table1[] = {{"VGG16", 1180, 207, 454}, {"ResNet50", 1838, 911, 1412}};

// Speeds relative to no communication. models.cc
[[nodiscard]] std::vector<Check> checks_of_table1(const TableRow& row, double switchml, double ring,
                                                  const std::string& ring_name);

}  // namespace atp::figure
