// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "crypto/formation_seal.h"

namespace atp::store {

// Seals what a rank leaves in a store, and opens what the others left. Of a rank without a key, values stay as they
// are.
//
// Ownership: a value. Calling order: that of crypto::FormationSeal. Threads: none.
// Failure: mismatched: ranks have different keys, or none, or a value was not left by the rank at whose place it
// stands.
class Sealing {
  public:
    // `formation`: begins the keys of one formation.
    Sealing(std::string formation, std::uint32_t rank, std::uint32_t world,
            const std::optional<crypto::TenantKey>& key);

    [[nodiscard]] std::string sealed(std::string_view place, std::string value) const;
    [[nodiscard]] std::string sealed_notice(std::string value) const;
    // The values of `ranks` at these keys of the store.
    [[nodiscard]] Result<std::vector<std::string>> opened(const std::vector<std::uint32_t>& ranks,
                                                          const std::vector<std::string>& places,
                                                          std::vector<std::string> values);
    // nullopt: no rank of this formation left it.
    [[nodiscard]] std::optional<std::string> opened_notice(std::string value) const;
    [[nodiscard]] bool has_key() const { return seal_.has_value(); }
    // A secret that the ranks share without sending it; nullopt: there is no key.
    [[nodiscard]] std::optional<Secret> secret(std::string_view purpose, std::uint32_t number) const;
    // The same, as a key.
    [[nodiscard]] std::optional<crypto::SecretKey> key(std::string_view purpose) const;

  private:
    [[nodiscard]] Result<void> compare_keys(const std::vector<std::uint32_t>& ranks,
                                            const std::vector<std::string>& values) const;
    [[nodiscard]] std::uint32_t blamed(const std::vector<std::uint32_t>& closed) const;

    std::string formation_;
    std::uint32_t rank_;
    std::uint32_t world_;
    std::optional<crypto::FormationSeal> seal_;
};

}  // namespace atp::store
