// SPDX-License-Identifier: Apache-2.0
// SecretKey files: one secret each, which only the owner of the file may read.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "crypto/tenant_key.h"

namespace atp::keys {

// Of the kernel's random bits.
[[nodiscard]] crypto::SecretKey random_key();
[[nodiscard]] crypto::Nonce random_nonce();

// Failure: denied if others than the owner may read the file; malformed; or the error of a system call.
[[nodiscard]] Result<crypto::TenantKey> read_key_file(const std::string& path);
// The key of ranks: the file at `path`, or the one that ATP_KEY_FILE names if that is empty. nullopt: none is named.
// Failure: also malformed, for the file of a switch.
[[nodiscard]] Result<std::optional<crypto::TenantKey>> read_key_of_ranks(const std::string& path);
// Creates the file at mode 600. Failure: in_use if it exists, or the error of a system call; then there is no new file.
[[nodiscard]] Result<void> write_key_file(const std::string& path, const crypto::TenantKey& key);

}  // namespace atp::keys
