// SPDX-License-Identifier: Apache-2.0
// The key of a tenant, the keys that follow from it, and the text of a key file. docs/spec/formation.md#keys is
// normative.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/crypto.h"

namespace atp::crypto {

struct TenantKey {
    std::uint32_t id = 0;     // shown to everybody; above 0
    std::string tenant{};     // name of the team
    std::string at_switch{};  // the only switch at which this key joins; empty: it is the key of the tenant itself
    SecretKey key{};
};

inline constexpr std::size_t max_key_name_bytes = 63;
// "vision", "leaf-3.example": letters, digits, '-', '_' and '.'.
[[nodiscard]] bool is_key_name(std::string_view name);
inline constexpr std::string_view key_name_forms = "1 to 63 letters, digits, '-', '_' or '.'";

// A key for one purpose. Who has it learns nothing of `key`, nor of the keys for other purposes or names.
[[nodiscard]] SecretKey derive(const SecretKey& key, std::string_view purpose, std::string_view name = {});
inline constexpr std::string_view for_store = "store";  // values in the ranks' store
inline constexpr std::string_view for_join = "join";    // joining at one switch, whose name follows

// What a switch of this name gets: it never holds the key of a tenant. `tenant`: of the tenant itself.
[[nodiscard]] TenantKey key_for_switch(const TenantKey& tenant, std::string_view name);

// The content of a key file, which is as secret as the key: wipe() it.
[[nodiscard]] std::string to_text(const TenantKey& key);
// The error names the line, never its content.
[[nodiscard]] Result<TenantKey> parse_key(std::string_view text);

}  // namespace atp::crypto
