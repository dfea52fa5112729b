// SPDX-License-Identifier: Apache-2.0
// Hashes of hash.json: every worker, server and rank in any language must compute the same values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atp::conformance {

struct HashVector {
    std::string_view function;  // "index", "audit" or "purpose", as in docs/protocol.md
    std::vector<std::pair<std::string_view, std::uint64_t>> arguments;
    std::uint32_t value = 0;
};

[[nodiscard]] std::vector<HashVector> hash_vectors();

// The text of hash.json: an array with one vector per line, so that a diff shows the changed vectors.
[[nodiscard]] std::string hash_vectors_to_json(const std::vector<HashVector>& vectors);

}  // namespace atp::conformance
