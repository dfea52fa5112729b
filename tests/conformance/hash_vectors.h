// SPDX-License-Identifier: Apache-2.0
// Hashes of hash.json: every worker, server and rank in any language must compute the same values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atp::conformance {

struct HashVector {
    std::string_view function;  // "index", "first_index", "audit" or "purpose", as in docs/spec/vectors.md
    std::vector<std::pair<std::string_view, std::uint64_t>> arguments;
    std::uint32_t value = 0;
};

[[nodiscard]] std::vector<HashVector> hash_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const HashVector& vector);

}  // namespace atp::conformance
