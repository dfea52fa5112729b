// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/crypto.h"

namespace atp::crypto {

inline std::string hex(Bytes bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(byte));
        text += digits;
    }
    return text;
}

inline std::vector<std::byte> from_hex(std::string_view text) {
    std::vector<std::byte> bytes;
    for (; text.size() >= 2; text.remove_prefix(2)) {
        bytes.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(0, 2)), nullptr, 16)));
    }
    return bytes;
}

// 00 01 02 ...
inline SecretKey counting_key(unsigned first = 0) {
    SecretKey key;
    for (std::size_t at = 0; at < SecretKey::size; ++at) key.bytes()[at] = static_cast<std::byte>(first + at);
    return key;
}

}  // namespace atp::crypto
