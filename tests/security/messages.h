// SPDX-License-Identifier: Apache-2.0
// What an attacker can say: a message of each type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "values.h"
#include "wire/format.h"
#include "wire/joining_message.h"

namespace atp::test {

// A channel, and what somebody knows or guesses about it.
struct Target {
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint64_t nonce = 0;  // of a member
    std::uint32_t epoch = 1;  // of a JOIN that the member will send
    std::uint32_t seq = 0;    // of a fragment
};

struct Forgery {
    std::string name;
    Bytes bytes;
};

[[nodiscard]] wire::Join join_of(const Target& target);
template <class Message>
[[nodiscard]] Bytes bytes_of(const Message& message) {
    Bytes bytes(2048);
    bytes.resize(wire::encode(message, bytes));
    return bytes;
}

// One of each type of control message, all of which are well-formed.
[[nodiscard]] std::vector<Forgery> control_forgeries(const Target& target);
// One of each type of packet. Without `lanes`, those that can change a sum are left out.
[[nodiscard]] std::vector<Forgery> packet_forgeries(const Target& target, bool lanes);

}  // namespace atp::test
