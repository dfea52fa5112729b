// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "control/branch.h"
#include "control/channel_rules.h"
#include "wire/address.h"

namespace atp::endpoint {

// The switch's side of a protocol other than ATP, for the channels of one shard. The product has no such protocol: the
// laboratory registers one to compare it with ATP.
//
// Ownership: borrows each branch from open() to close().
// Calling order: open() for a complete branch; handle_packet() for each packet that has the protocol's format; close()
//   before another branch takes this branch's position in the tree.
// Threads: one.
class ShardProtocol : public control::ChannelRules {
  public:
    // True if the packet has the format of this protocol.
    [[nodiscard]] virtual bool has_format(std::span<const std::byte> bytes) const = 0;
    struct Receivers {
        const control::Branch* branch = nullptr;
        std::uint32_t children = 0;  // bits of the children to which the packet goes; 0: the packet is dropped
    };
    // Rewrites the packet into its answer, in place and with the same length.
    [[nodiscard]] virtual Receivers handle_packet(std::span<std::byte> bytes, const wire::Address& from) = 0;
    // Returns the number of the channel in the protocol's packets, or the reason of a refusal.
    [[nodiscard]] virtual tl::expected<std::uint8_t, std::string> open(const control::Branch& branch) = 0;
    // No effect if the channel is not open.
    virtual void close(const control::ChannelKey& key) = 0;
    // Additions to the report of the shard: one JSON object.
    [[nodiscard]] virtual std::string report_parts() const = 0;
};

}  // namespace atp::endpoint
