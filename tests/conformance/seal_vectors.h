// SPDX-License-Identifier: Apache-2.0
// Rows of seal.json: keys, and the values that ranks with a key leave in a store.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "crypto/formation_seal.h"
#include "crypto/tenant_key.h"

namespace atp::conformance {

using Rounds = std::vector<std::vector<std::string>>;  // what all ranks left, as it stands in the store

struct SealVector {
    std::string description;
    std::string function;  // "derive", "value", "notice" or "secret", as in docs/spec/vectors.md
    std::string purpose{};
    std::string name{};  // of "derive"
    Rounds rounds{};     // read before
    std::string place{};
    std::string nonce{};
    std::string plain{};
    std::uint32_t rank = 0;  // of "secret"
    std::string result{};
};

// 00 01 02 ... 1f, id 7.
[[nodiscard]] crypto::TenantKey key_of_vectors();
// A rank that has read these rounds.
[[nodiscard]] crypto::FormationSeal seal_after(const Rounds& rounds);
[[nodiscard]] crypto::Nonce nonce_from(const std::string& bytes);
[[nodiscard]] std::string hex_of(const std::string& bytes);
// The two words, each big-endian.
[[nodiscard]] std::string bytes_of_secret(const Secret& secret);

[[nodiscard]] std::vector<SealVector> seal_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const SealVector& vector);

}  // namespace atp::conformance
