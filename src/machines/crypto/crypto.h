// SPDX-License-Identifier: Apache-2.0
// The cryptography of ATP: five functions of libsodium. All are pure: nonces and keys come in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace atp::crypto {

using Bytes = std::span<const std::byte>;
[[nodiscard]] inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// 32 secret bytes. Each copy wipes itself when it goes.
class SecretKey {
  public:
    static constexpr std::size_t size = 32;

    SecretKey() = default;
    explicit SecretKey(std::span<const std::byte, size> bytes);
    SecretKey(const SecretKey&) = default;
    SecretKey& operator=(const SecretKey&) = default;
    ~SecretKey();

    [[nodiscard]] std::span<const std::byte, size> bytes() const { return bytes_; }
    [[nodiscard]] std::span<std::byte, size> bytes() { return bytes_; }

  private:
    std::array<std::byte, size> bytes_{};
};

// Overwrites secrets, also where the compiler sees that nobody reads them again.
void wipe(std::span<std::byte> secret);
void wipe(std::string& secret);

// Takes as long for equal bytes as for others.
[[nodiscard]] bool are_equal(Bytes one, Bytes other);  // false: of different lengths

// BLAKE2b with a key (RFC 7693), of the parts as if they were one message. Without the key, nobody can tell the result
// from random bytes.
[[nodiscard]] std::array<std::byte, 16> code16(const SecretKey& key, std::initializer_list<Bytes> parts);
[[nodiscard]] std::array<std::byte, 32> code32(const SecretKey& key, std::initializer_list<Bytes> parts);

// A nonce is used once with a key. 24 random bytes never meet again.
using Nonce = std::array<std::byte, 24>;
inline constexpr std::size_t seal_bytes = 16;  // a sealed message is so much longer

// XChaCha20-Poly1305: hides `plain`, and binds it to `associated`, which both ends know. `sealed` has seal_bytes more
// than `plain`.
void seal(const SecretKey& key, const Nonce& nonce, Bytes associated, Bytes plain, std::span<std::byte> sealed);
// False: it was sealed with another key, nonce or associated text, or it was changed; `plain` then holds nothing.
[[nodiscard]] bool open(const SecretKey& key, const Nonce& nonce, Bytes associated, Bytes sealed,
                        std::span<std::byte> plain);

// ChaCha20 with a nonce of 64 bits, from block `first` on: without the key, nobody can tell it from random bytes.
inline constexpr std::size_t stream_block_bytes = 64;
void stream(const SecretKey& key, std::uint64_t nonce, std::uint64_t first, std::span<std::byte> bytes);

}  // namespace atp::crypto
