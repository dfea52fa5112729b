// SPDX-License-Identifier: Apache-2.0
// The codes by which a member and its switch believe each other. docs/spec/codes.md is normative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "control/channel_key.h"
#include "crypto/crypto.h"
#include "crypto/tenant_key.h"
#include "wire/joining_message.h"
#include "wire/message_code.h"

namespace atp::control {

// The name of a switch that has the tenant's own key: it is the key's owner who names a switch.
inline constexpr std::string_view own_key_name = "*";

// To whom a message goes, so that none is believed by the one who sent it.
enum class Direction : std::uint8_t { up = 1, down = 2 };

// Codes of one member's channel at one process of a switch. Its key has a random number of each side, so what was
// recorded in one session counts in no other.
//
// Ownership: a value. Threads: none. Failure: none.
class SessionCode {
  public:
    // `nonce`: of the member's JOINs. `boot`: of the switch.
    SessionCode(const crypto::SecretKey& join_key, std::uint64_t nonce, std::uint64_t boot, const ChannelKey& channel);

    // Appends `part` with the code of all before it to a message of `size` bytes. Returns the new size; 0: no room.
    template <class Part>
    [[nodiscard]] std::size_t append(const Part& part, Direction direction, std::span<std::byte> bytes,
                                     std::size_t size) const {
        const std::size_t whole = wire::append_code(part, bytes, size);
        if (whole == 0) return 0;
        write(direction, bytes.first(whole));
        return whole;
    }
    template <class Part>
    [[nodiscard]] bool fits(const wire::Coded<Part>& coded, Direction direction) const {
        return crypto::are_equal(code_of(direction, coded.covered), coded.part.code);
    }

  private:
    void write(Direction direction, std::span<std::byte> message) const;
    [[nodiscard]] wire::MessageCode code_of(Direction direction, std::span<const std::byte> covered) const;

    crypto::SecretKey key_;
};

// Zeros up to `least`. Returns the new size; 0: no room.
[[nodiscard]] std::size_t pad(std::span<std::byte> bytes, std::size_t size, std::size_t least);
// Without padding.
[[nodiscard]] std::size_t encode_bare(const wire::JoiningMessage& message, std::span<std::byte> bytes);

}  // namespace atp::control
