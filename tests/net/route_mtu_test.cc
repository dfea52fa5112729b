// SPDX-License-Identifier: Apache-2.0
#include "net/route_mtu.h"

#include <gtest/gtest.h>

#include "own_network.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using net::route_mtu;

class RouteMtu : public OnLoopback {};
INSTANTIATE_TEST_SUITE_P(Families, RouteMtu, both_families, family_name);

TEST_P(RouteMtu, IsThatOfTheInterface) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const auto mtu = route_mtu(wire::Address::loopback(family, 9));
        if (!mtu) return to_string(mtu.error());
        return *mtu == 1500 ? "" : "MTU " + std::to_string(*mtu);
    }));
}

TEST_P(RouteMtu, MissingRouteIsUnreachable) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const bool v6 = family == wire::Family::ipv6;
        const auto mtu = route_mtu(*wire::Address::parse(v6 ? "[2001:db8::1]:9" : "192.0.2.1:9"));
        if (mtu) return "MTU " + std::to_string(*mtu) + " to nowhere";
        return mtu.error().reason == Reason::unreachable ? "" : to_string(mtu.error());
    }));
}

}  // namespace
}  // namespace atp::test
