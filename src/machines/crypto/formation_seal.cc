// SPDX-License-Identifier: Apache-2.0
#include "crypto/formation_seal.h"

#include <algorithm>
#include <cstring>

namespace atp::crypto {
namespace {

constexpr std::size_t header_bytes = 8;  // kind and key id, which everybody may see

std::string big_endian(std::uint32_t number) {
    std::string bytes(4, '\0');
    for (unsigned at = 0; at < 4; ++at) bytes[at] = static_cast<char>(number >> 8 * (3 - at));
    return bytes;
}

std::uint32_t number_at(std::string_view bytes) {
    std::uint32_t number = 0;
    for (const char byte : bytes.substr(0, 4)) number = number << 8U | static_cast<unsigned char>(byte);
    return number;
}

std::uint64_t word_of(Bytes bytes) {
    std::uint64_t word = 0;
    for (std::size_t at = 0; at < 8; ++at) word = word << 8U | std::to_integer<std::uint64_t>(bytes[at]);
    return word;
}

}  // namespace

std::optional<std::uint32_t> key_of_sealed(std::string_view value) {
    if (value.size() < seal_overhead || number_at(value) < sealed_notice) return std::nullopt;
    return number_at(value.substr(4));
}

std::string FormationSeal::bound_to(std::string_view place) const {
    std::string text(transcript_.size(), '\0');
    std::memcpy(text.data(), transcript_.data(), transcript_.size());
    return text.append(place);
}

std::string FormationSeal::sealed(std::uint32_t kind, const std::string& associated, std::string_view value,
                                  const Nonce& nonce) const {
    std::string text = big_endian(kind) + big_endian(id_);
    const std::string bound = text + associated;
    text.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
    const std::size_t begin = text.size();
    text.resize(begin + value.size() + seal_bytes);
    crypto::seal(key_, nonce, bytes_of(bound), bytes_of(value), std::as_writable_bytes(std::span(text)).subspan(begin));
    return text;
}

std::string FormationSeal::seal(std::string_view place, std::string_view value, const Nonce& nonce) const {
    return sealed(sealed_value, bound_to(place), value, nonce);
}

std::string FormationSeal::seal_notice(std::string_view formation, std::string_view value, const Nonce& nonce) const {
    return sealed(sealed_notice, std::string(formation), value, nonce);
}

std::optional<std::string> FormationSeal::open(std::string_view place, std::string_view formation,
                                               std::string_view sealed) const {
    if (key_of_sealed(sealed) != id_) return std::nullopt;
    const bool is_value = number_at(sealed) == sealed_value;
    const std::string bound =
        std::string(sealed.substr(0, header_bytes)) + (is_value ? bound_to(place) : std::string(formation));
    Nonce nonce{};
    std::memcpy(nonce.data(), sealed.data() + header_bytes, nonce.size());
    std::string plain(sealed.size() - seal_overhead, '\0');
    if (!crypto::open(key_, nonce, bytes_of(bound), bytes_of(sealed.substr(header_bytes + nonce.size())),
                      std::as_writable_bytes(std::span(plain)))) {
        return std::nullopt;
    }
    return plain;
}

void FormationSeal::close_round(std::span<const std::string> sealed) {
    std::array<std::byte, 32> hash = transcript_;
    for (const std::string& value : sealed) {
        const std::string length = big_endian(static_cast<std::uint32_t>(value.size()));
        hash = code32(key_, {bytes_of("round"), hash, bytes_of(length), bytes_of(value)});
    }
    transcript_ = hash;
}

Secret FormationSeal::secret(std::string_view purpose, std::uint32_t number) const {
    const std::string of_rank = big_endian(number);
    const auto code = code16(key_, {bytes_of("secret"), transcript_, bytes_of(of_rank), bytes_of(purpose)});
    return {word_of(code), word_of(Bytes(code).subspan(8))};
}

SecretKey FormationSeal::key(std::string_view purpose) const {
    return SecretKey(code32(key_, {bytes_of("key"), transcript_, bytes_of(purpose)}));
}

}  // namespace atp::crypto
