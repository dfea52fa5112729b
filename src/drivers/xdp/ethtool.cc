// SPDX-License-Identifier: Apache-2.0
#include "xdp/ethtool.h"

#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "net/descriptor.h"

namespace atp::xdp {

bool ask_driver(const std::string& interface, void* command) {
    const net::Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
    request.ifr_data = static_cast<char*>(command);
    return any.valid() && ::ioctl(any.number(), SIOCETHTOOL, &request) == 0;
}

}  // namespace atp::xdp
