// SPDX-License-Identifier: Apache-2.0
// Jobs of scale.json: operations with dynamic scaling, whose scales, lanes and sums every worker must compute alike.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace atp::conformance {

// Values of neighbours that are equal, with their number.
template <class Value>
using Runs = std::vector<std::pair<std::uint32_t, Value>>;

struct ScaledSpan {
    int proposal = 0;          // e: like c, the exponent of a power of two
    int coarsest = 0;          // c1
    int scale = 0;             // after the vote
    std::vector<int> cells{};  // c of each cell; at 2^127 there are none
};

struct ScaledStep {
    std::vector<Runs<std::uint32_t>> inputs;       // of each worker: bits of float32
    std::vector<Runs<std::uint32_t>> exponents{};  // of each worker: words of the operation about exponents
    std::vector<Runs<std::uint32_t>> votes{};      // of each worker: words of the vote
    std::vector<ScaledSpan> spans{};
    std::vector<Runs<std::optional<std::int32_t>>> lanes{};  // of each worker; nullopt: the element has no integer
    Runs<std::optional<std::int64_t>> sums{};
    Runs<std::uint32_t> results{};  // bits of float32, the same on all workers
};

struct ScaleVector {
    std::string description;
    std::string form;  // of the lanes
    std::vector<ScaledStep> steps;
};

[[nodiscard]] std::vector<ScaleVector> scale_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const ScaleVector& vector);

}  // namespace atp::conformance
