// SPDX-License-Identifier: Apache-2.0
#include "c_api_switch.h"

#include <memory>
#include <string>

#include "switchd/node.h"

namespace {

std::unique_ptr<atp::switchd::SwitchNode> node;
std::string address;

}  // namespace

extern "C" const char* start_test_switch() {
    atp::switchd::SwitchNodeConfig config;
    config.udp.local = atp::wire::Address::loopback(atp::wire::Family::ipv4, 0);
    config.memory_bytes = 4'000'000;
    auto started = atp::switchd::SwitchNode::start(config);
    if (!started) return nullptr;
    node = *std::move(started);
    address = to_string(node->address());
    return address.c_str();
}

extern "C" void stop_test_switch() { node.reset(); }
