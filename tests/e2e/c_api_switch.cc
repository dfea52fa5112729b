// SPDX-License-Identifier: Apache-2.0
#include "c_api_switch.h"

#include <memory>
#include <string>

#include "net/switch_node.h"

namespace {

std::unique_ptr<atp::net::SwitchNode> node;
std::string address;

}  // namespace

extern "C" const char* start_test_switch() {
    atp::net::SwitchNodeConfig config;
    config.udp.local = atp::net::Address::loopback(atp::net::Family::ipv4, 0);
    config.memory_bytes = 4'000'000;
    auto started = atp::net::SwitchNode::start(config);
    if (!started) return nullptr;
    node = *std::move(started);
    address = to_string(node->address());
    return address.c_str();
}

extern "C" void stop_test_switch() { node.reset(); }
