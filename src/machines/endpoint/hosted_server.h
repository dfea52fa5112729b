// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <new>

#include "control/branch.h"
#include "protocol/server.h"
#include "protocol/variant.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

// A channel's server with the membership that it borrows.
struct HostedServer {
    HostedServer(const protocol::ServerConfig& config, protocol::Membership members)
        : membership(std::move(members)), server(config, membership) {}
    HostedServer(const HostedServer&) = delete;
    HostedServer& operator=(const HostedServer&) = delete;

    protocol::Membership membership;
    protocol::Server server;
    bool queued = false;  // in the driver's queue of servers that have packets to send
};

// `indices`: of the channel's slots; nullptr: the hash of the protocol.
[[nodiscard]] inline protocol::ChannelConfig channel_config(const wire::ChannelTerms& terms,
                                                            const protocol::IndexRule* indices = nullptr) {
    return {.job = terms.job,
            .token = terms.token,
            .channel = terms.channel,
            .lanes = terms.lanes,
            .window_log2 = terms.window_log2,
            .audit = terms.audit,
            .aggregators = terms.aggregators,
            .first_seq = terms.first_seq,
            .indices = indices};
}

// `memory`: for its sums, borrowed.
// nullptr if the ranks of the members are inconsistent, or if memory is exhausted: one job's request must not end the
// switch of all other jobs.
[[nodiscard]] inline std::unique_ptr<HostedServer> host_server(const control::Branch& branch, MemoryBudget& memory,
                                                               const protocol::IndexRule* indices = nullptr) {
    auto membership = branch.membership();
    if (!membership) return nullptr;
    try {
        return std::make_unique<HostedServer>(
            protocol::ServerConfig{
                .channel = channel_config(branch.terms, indices), .scale = branch.terms.scale, .memory = &memory},
            *std::move(membership));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
