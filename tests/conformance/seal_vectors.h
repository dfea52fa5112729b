// SPDX-License-Identifier: Apache-2.0
// Rows of seal.json: keys, the values that ranks with a key leave in a store, and what proves sums.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "crypto/formation_seal.h"
#include "crypto/tenant_key.h"

namespace atp::conformance {

using Rounds = std::vector<std::vector<std::string>>;  // what all ranks left, as it stands in the store

struct SealVector {
    std::string description;
    std::string function;  // "derive", "value", "notice", "secret", "key", "code", "word" or "packet": vectors.md
    std::string purpose{};
    std::string name{};  // of "derive"
    Rounds rounds{};     // read before
    std::string place{};
    std::string nonce{};
    std::string plain{};
    std::uint32_t rank = 0;  // of "secret"
    std::string result{};
    std::vector<std::pair<std::string, std::uint64_t>> numbers{};  // of "code", "word" and "packet"
    std::vector<std::vector<std::uint32_t>> words{};               // of "code": one list; of "packet": by worker
    std::vector<std::vector<std::uint32_t>> proof{};               // of "packet": by worker
};

// 00 01 02 ... 1f, id 7.
[[nodiscard]] crypto::TenantKey key_of_vectors();
// A rank that has read these rounds.
[[nodiscard]] crypto::FormationSeal seal_after(const Rounds& rounds);
[[nodiscard]] crypto::Nonce nonce_from(const std::string& bytes);
[[nodiscard]] std::string hex_of(const std::string& bytes);
// The two words, each big-endian.
[[nodiscard]] std::string bytes_of_secret(const Secret& secret);

// The code of words, which a row of the file has.
[[nodiscard]] std::uint64_t code_of(std::uint64_t operation, std::uint64_t first, bool is_natural,
                                    const std::vector<std::uint32_t>& words);
// The word of a rank about an operation, sealed.
[[nodiscard]] std::string sealed_word(const SealVector& vector);

[[nodiscard]] std::vector<SealVector> seal_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const SealVector& vector);

}  // namespace atp::conformance
