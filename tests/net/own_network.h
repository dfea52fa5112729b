// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace atp::test {

// What a body returns when this machine lacks what it needs.
inline constexpr const char* not_possible_here = "not possible here";

// Runs `body` in a child process with a network of its own: a loopback with this MTU, and nothing else. `body` returns
// what it found wrong, empty for nothing. nullopt: this machine does not allow it.
std::optional<std::string> run_in_own_network(int loopback_mtu, const std::function<std::string()>& body);

}  // namespace atp::test
