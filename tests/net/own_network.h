// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace atp::test {

// Result of a body that lacks a feature of this host.
inline constexpr const char* not_possible_here = "not possible here";

// Runs `body` in a child process with its own network: only a loopback with this MTU. `body` returns an error text,
// empty on success. nullopt: this host does not allow network namespaces.
std::optional<std::string> run_in_own_network(int loopback_mtu, const std::function<std::string()>& body);
// Only in `body`. False: the kernel refuses it.
bool set_loopback_mtu(int mtu);

}  // namespace atp::test

// A test with this body, in a network whose loopback has Ethernet's MTU.
#define IN_OWN_NETWORK(body)                                                   \
    const auto found = ::atp::test::run_in_own_network(1500, body);            \
    if (!found) GTEST_SKIP() << "this user cannot create a network namespace"; \
    EXPECT_EQ(*found, "")
