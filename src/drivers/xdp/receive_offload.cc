// SPDX-License-Identifier: Apache-2.0
#include "xdp/receive_offload.h"

#include <linux/ethtool.h>

#include "xdp/ethtool.h"

namespace atp::xdp {

bool merge_received(const std::string& interface) {
    ethtool_value merges{.cmd = ETHTOOL_GGRO, .data = 0};
    if (!ask_driver(interface, &merges) || merges.data != 0) return false;
    merges = {.cmd = ETHTOOL_SGRO, .data = 1};
    return ask_driver(interface, &merges);
}

void stop_merging_received(const std::string& interface) {
    ethtool_value merges{.cmd = ETHTOOL_SGRO, .data = 0};
    static_cast<void>(ask_driver(interface, &merges));
}

}  // namespace atp::xdp
