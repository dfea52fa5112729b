// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/siphash.h"
#include "crypto/crypto.h"
#include "crypto/tenant_key.h"

namespace atp::crypto {

// The number of ranks with which a sealed value begins: more than any job has.
inline constexpr std::uint32_t sealed_value = UINT32_MAX;
inline constexpr std::uint32_t sealed_notice = UINT32_MAX - 1;  // of a rank that gave up
inline constexpr std::size_t seal_overhead = 4 + 4 + std::tuple_size_v<Nonce> + seal_bytes;

// The id of the key that sealed the value; nullopt: nobody sealed it.
[[nodiscard]] std::optional<std::uint32_t> key_of_sealed(std::string_view value);

// Seals what one rank leaves in the store while a job forms, and opens what the others left there, so that a store need
// not be trusted. Who can write to it can only prevent that the job forms. docs/spec/formation.md#sealed-values is
// normative.
//
// A value opens only at its place, and only after the rounds that the rank which left it had read: their hash is bound
// to it. The nonces of the first round are random, so no value of an earlier formation opens in a later one.
//
// Ownership: a value. Calling order: per round seal() and open(), then close_round() if all ranks took part.
// Threads: none. Failure: open() of a value that nobody with the key left there, now.
class FormationSeal {
  public:
    explicit FormationSeal(const TenantKey& key) : id_(key.id), key_(derive(key.key, for_store)) {}

    // `place`: the key of the store under which the value stands.
    [[nodiscard]] std::string seal(std::string_view place, std::string_view value, const Nonce& nonce) const;
    // A notice stands at many places, and ranks in different rounds read it: so it is bound to neither.
    [[nodiscard]] std::string seal_notice(std::string_view formation, std::string_view value, const Nonce& nonce) const;
    // Either of both. nullopt: it does not open.
    [[nodiscard]] std::optional<std::string> open(std::string_view place, std::string_view formation,
                                                  std::string_view sealed) const;
    // All ranks have read these values, as they stand in the store, in the order of ranks.
    void close_round(std::span<const std::string> sealed);

    // Only ranks that read the same values have this secret. It ends with the formation.
    [[nodiscard]] Secret secret(std::string_view purpose, std::uint32_t number) const;
    // The same, as a key.
    [[nodiscard]] SecretKey key(std::string_view purpose) const;

    [[nodiscard]] std::uint32_t id() const { return id_; }

  private:
    [[nodiscard]] std::string sealed(std::uint32_t kind, const std::string& associated, std::string_view value,
                                     const Nonce& nonce) const;
    [[nodiscard]] std::string bound_to(std::string_view place) const;

    std::uint32_t id_;
    SecretKey key_;
    std::array<std::byte, 32> transcript_{};  // of all rounds of all ranks
};

}  // namespace atp::crypto
