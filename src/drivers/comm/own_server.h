// SPDX-License-Identifier: Apache-2.0
// What a rank runs for its job at its address `listen`: host:port, host:0 or host:first-last.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "control/channel_key.h"
#include "crypto/tenant_key.h"
#include "switchd/node.h"
#include "wire/address.h"

namespace atp::comm {

struct ServedPart {
    control::JobKey job{};                                 // the only one that may join
    std::shared_ptr<const crypto::TenantKey> key{};        // of its tenant; nullptr: it has none
    std::uint64_t memory_bytes = 0;                        // of aggregators; 0: a server only
    std::uint32_t lanes = 0;                               // of an aggregator
    std::shared_ptr<const protocol::IndexRule> indices{};  // nullptr: the hash of the protocol
};
// At the first free port of `listen`.
[[nodiscard]] Result<std::unique_ptr<switchd::SwitchNode>> serve_at(const std::string& listen, const ServedPart& part);
[[nodiscard]] Result<wire::Address> host_of_listen(const std::string& listen);

}  // namespace atp::comm
