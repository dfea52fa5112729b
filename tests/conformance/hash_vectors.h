// SPDX-License-Identifier: Apache-2.0
// The hashes of hash.json: what every worker, server and rank, in whatever language, must compute alike.
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

// The text of hash.json: an array with one vector a line, so that a change shows as the lines that changed.
[[nodiscard]] std::string hash_vectors_to_json(const std::vector<HashVector>& vectors);

}  // namespace atp::conformance
