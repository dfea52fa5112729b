// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "control/branch.h"
#include "endpoint/shard_protocol.h"
#include "switchml/pool_snapshot.h"
#include "switchml/switch.h"

namespace atp::switchml {

// The SwitchML part of a shard: a SwitchML switch, and the branch of the tree for each stream. A stream is a channel
// that uses SwitchML. It is a job of the SwitchML switch, and this pool assigns its number.
//
// SwitchML packets have no token. The source address replaces the token: the pool drops a packet that does not come
// from the address from which its worker joined.
//
// Ownership: owns the pool, allocated at construction. Borrows each branch while it is open.
// Calling order: open() for a complete branch; handle_packet() for each packet; close() before another branch takes
//   this branch's position in the tree.
// Threads: one.
// Failure: open() returns the reason if there is no room. Packets that belong to no stream are dropped and counted.
class StreamPool final : public endpoint::ShardProtocol {
  public:
    explicit StreamPool(const switchml::SwitchConfig& config);

    [[nodiscard]] std::optional<std::string> objection_to(const wire::Join& join) const override;
    [[nodiscard]] bool has_format(std::span<const std::byte> bytes) const override;
    // Stream numbers are assigned in turn, so a number is not reused soon.
    [[nodiscard]] tl::expected<std::uint8_t, std::string> open(const control::Branch& branch) override;
    void close(const control::ChannelKey& key) override;
    [[nodiscard]] Receivers handle_packet(std::span<std::byte> bytes, const wire::Address& from) override;
    // "switchml": the pool and its streams.
    [[nodiscard]] std::string report_parts() const override;

    [[nodiscard]] PoolSnapshot snapshot() const;

  private:
    struct Stream {
        const control::Branch* branch = nullptr;
        control::ChannelKey key;
    };

    [[nodiscard]] std::optional<std::uint8_t> free_number() const;
    [[nodiscard]] bool names_its_sender(std::span<const std::byte> bytes, const wire::Address& from) const;

    switchml::Switch switch_;
    std::array<std::optional<Stream>, 256> streams_;
    std::uint8_t next_ = 0;
    std::uint64_t strangers_ = 0;  // dropped: the source address differs from that of the worker that the packet names
};

// Slots of one pool with this memory.
[[nodiscard]] std::uint32_t slots_in(std::uint64_t memory_bytes, std::uint16_t lanes);

// The parameters of a channel with these terms, for the switch and for the workers.
[[nodiscard]] switchml::JobConfig stream_config(const wire::ChannelTerms& terms, unsigned workers);

}  // namespace atp::switchml
