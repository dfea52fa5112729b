// SPDX-License-Identifier: Apache-2.0
// Control messages of tests, and their bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "wire/control.h"

namespace atp::testing {

// The message as a datagram. `padding` is an argument for encode() functions that have this parameter.
template <class Message, class... Padding>
std::vector<std::byte> encoded(const Message& message, Padding... padding) {
    std::vector<std::byte> bytes(wire::max_control_bytes);
    bytes.resize(wire::encode(message, bytes, padding...));
    return bytes;
}

// Bytes of the longest JOIN of a unit, without padding: 32 members, four edges, four statements and a name.
inline constexpr std::size_t longest_unit_join_bytes = 836;

// JOIN of a worker that is member 2 of unit 2. Every field differs from the others and from 0.
[[nodiscard]] inline wire::Join join_of_worker() {
    wire::Join join;
    join.nonce = 0x2122232425262728;
    join.terms = {.job = 0x01020304,
                  .token = 0x5EEDFACE01234567,
                  .channel = 0x0A0B,
                  .lanes = 62,
                  .window_log2 = 8,
                  .audit = true,
                  .aggregators = 0x00012345,
                  .first_seq = 0x11121314,
                  .mask1 = 0x7,
                  .scale = 1e8,
                  .server = {},
                  .group = {}};
    join.units = {{.unit = 2, .members = 0x4, .mask0 = 0xF, .direct = false, .ranks = {0x0203}}};
    return join;
}

}  // namespace atp::testing
