// SPDX-License-Identifier: Apache-2.0
#include "crypto/crypto.h"

#include <sodium.h>

#include <algorithm>

namespace atp::crypto {
namespace {

const unsigned char* in(Bytes bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* out(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

// Before its first use, libsodium looks which instructions the processor has. Every choice computes the same bits.
void prepare() {
    static const int prepared = sodium_init();
    static_cast<void>(prepared);
}

template <std::size_t length>
std::array<std::byte, length> code_of(const SecretKey& key, std::initializer_list<Bytes> parts) {
    static_assert(length >= crypto_generichash_BYTES_MIN && length <= crypto_generichash_BYTES_MAX);
    prepare();
    crypto_generichash_state state;
    crypto_generichash_init(&state, in(key.bytes()), SecretKey::size, length);
    for (const Bytes part : parts) crypto_generichash_update(&state, in(part), part.size());
    std::array<std::byte, length> code{};
    crypto_generichash_final(&state, out(code), length);
    sodium_memzero(&state, sizeof state);  // holds the key
    return code;
}

static_assert(SecretKey::size <= crypto_generichash_KEYBYTES_MAX);
static_assert(SecretKey::size == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
static_assert(std::tuple_size_v<Nonce> == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
static_assert(SecretKey::size == crypto_stream_chacha20_KEYBYTES);
static_assert(seal_bytes == crypto_aead_xchacha20poly1305_ietf_ABYTES);

}  // namespace

SecretKey::SecretKey(std::span<const std::byte, size> bytes) { std::ranges::copy(bytes, bytes_.begin()); }

SecretKey::~SecretKey() { wipe(bytes_); }

void wipe(std::span<std::byte> secret) { sodium_memzero(secret.data(), secret.size()); }

void wipe(std::string& secret) {
    sodium_memzero(secret.data(), secret.size());
    secret.clear();
}

bool are_equal(Bytes one, Bytes other) {
    return one.size() == other.size() && sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::array<std::byte, 16> code16(const SecretKey& key, std::initializer_list<Bytes> parts) {
    return code_of<16>(key, parts);
}

std::array<std::byte, 32> code32(const SecretKey& key, std::initializer_list<Bytes> parts) {
    return code_of<32>(key, parts);
}

void seal(const SecretKey& key, const Nonce& nonce, Bytes associated, Bytes plain, std::span<std::byte> sealed) {
    prepare();
    crypto_aead_xchacha20poly1305_ietf_encrypt(out(sealed), nullptr, in(plain), plain.size(), in(associated),
                                               associated.size(), nullptr, in(nonce), in(key.bytes()));
}

bool open(const SecretKey& key, const Nonce& nonce, Bytes associated, Bytes sealed, std::span<std::byte> plain) {
    prepare();
    return crypto_aead_xchacha20poly1305_ietf_decrypt(out(plain), nullptr, nullptr, in(sealed), sealed.size(),
                                                      in(associated), associated.size(), in(nonce),
                                                      in(key.bytes())) == 0;
}

void stream(const SecretKey& key, std::uint64_t nonce, std::uint64_t first, std::span<std::byte> bytes) {
    static_assert(crypto_stream_chacha20_NONCEBYTES == sizeof nonce);
    prepare();
    std::array<unsigned char, sizeof nonce> little{};
    for (std::size_t at = 0; at < little.size(); ++at) little[at] = static_cast<unsigned char>(nonce >> 8 * at);
    std::ranges::fill(bytes, std::byte{0});
    crypto_stream_chacha20_xor_ic(out(bytes), out(bytes), bytes.size(), little.data(), first, in(key.bytes()));
}

}  // namespace atp::crypto
