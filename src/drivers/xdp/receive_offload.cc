// SPDX-License-Identifier: Apache-2.0
#include "xdp/receive_offload.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#include "net/descriptor.h"

namespace atp::xdp {
namespace {

// False if the kernel refuses. `value` is argument and result.
bool ask_driver(const std::string& interface, std::uint32_t command, std::uint32_t& value) {
    const net::Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ethtool_value asked{.cmd = command, .data = value};
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
    request.ifr_data = reinterpret_cast<char*>(&asked);
    const bool answered = any.valid() && ::ioctl(any.number(), SIOCETHTOOL, &request) == 0;
    value = asked.data;
    return answered;
}

}  // namespace

bool merge_received(const std::string& interface) {
    std::uint32_t merges = 0;
    if (!ask_driver(interface, ETHTOOL_GGRO, merges) || merges != 0) return false;
    merges = 1;
    return ask_driver(interface, ETHTOOL_SGRO, merges);
}

void stop_merging_received(const std::string& interface) {
    std::uint32_t merges = 0;
    static_cast<void>(ask_driver(interface, ETHTOOL_SGRO, merges));
}

}  // namespace atp::xdp
