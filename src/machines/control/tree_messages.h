// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/time.h"
#include "control/gatekeeper.h"
#include "control/join_tree.h"
#include "control/switch_codes.h"
#include "protocol/variant.h"
#include "wire/control.h"

namespace atp::control {
inline namespace ATP_VARIANT {

struct TreeReception {
    bool understood = false;             // false: no valid message to a tree
    std::optional<wire::Retry> retry{};  // send it to the sender: the tree has not seen the message
};

// A JOIN for a switch that serves one job only, which is not that one: it gets no answer.
[[nodiscard]] bool is_of_another_job(const JoinTree& tree, std::span<const std::byte> bytes);

// Gives a message to the tree that it is for. A JOIN must be padded, so that its answer may be as long, and its sender
// must have proven its address. Only then does its code count, and the tree gets no message without a right one.
// `length`: of the datagram, with the padding that `bytes` may lack.
[[nodiscard]] TreeReception handle_tree_message(JoinTree& tree, Gatekeeper& gatekeeper, SwitchCodes& codes,
                                                std::span<const std::byte> bytes, std::size_t length,
                                                const wire::Address& from, Time now);

}  // namespace ATP_VARIANT
}  // namespace atp::control
