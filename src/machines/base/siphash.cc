// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

namespace atp {
namespace {

// Little-endian; at most 8 bytes.
std::uint64_t word_of(std::span<const std::byte> bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) word |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    return word;
}

}  // namespace

std::uint64_t siphash(const Secret& secret, std::span<const std::byte> message) {
    SipHash hash(secret);
    const std::uint64_t length = message.size();
    for (; message.size() >= 8; message = message.subspan(8)) hash.add(word_of(message.first(8)));
    return hash.finish(word_of(message) | length << 56);
}

}  // namespace atp
