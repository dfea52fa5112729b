// SPDX-License-Identifier: Apache-2.0
// Shared by tests of what a tree tells about neighbours that fail.
#pragma once

#include <algorithm>
#include <optional>

#include "join_tree_fixture.h"
#include "support/control_messages.h"

namespace atp::control {

using std::chrono::milliseconds;
using wire::EdgeKind;
using wire::Evidence;

inline wire::SendError no_process(const wire::Address& to, std::uint32_t with_token = token) {
    const auto quoted = testing::encoded(wire::Joined{.job = job, .token = with_token, .channel = channel});
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = to, .by_network = true};
    error.quoted_bytes = std::min(quoted.size(), error.quoted.size());
    std::copy_n(quoted.begin(), error.quoted_bytes, error.quoted.begin());
    return error;
}

// The edge of the last JOINED to a child; nullopt: the child was told nothing, or no edge.
inline std::optional<wire::Edge> edge_told(const Tree& tree, const wire::Address& child) {
    const auto joined = tree.sent_to<wire::Joined>(child);
    if (joined.empty() || joined.back().edges.empty()) return std::nullopt;
    return joined.back().edges.front();
}

}  // namespace atp::control
