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
#include "switchml/pool_snapshot.h"
#include "switchml/switch.h"

namespace atp::switchml {

// SwitchML's part of a shard: its switch, and which branch of the tree each of its jobs is. A channel that speaks
// SwitchML is a stream here: what the protocol calls a job, under a number that this pool gives out.
//
// Its packets have no token, so the address that a member joined from stands for it: what comes from another is
// dropped.
//
// Calling order: open() a branch that is complete; handle_packet() for what arrives; close() before the branch's place
// in the tree is somebody else's. Owns: the pool, claimed at construction. Borrows branches while they are open.
// Threads: one. Failure: open() says why there is no room; other packets than a stream's own are dropped and counted.
class StreamPool {
  public:
    explicit StreamPool(const switchml::SwitchConfig& config);

    // The stream's number, or why it cannot be had. Numbers go round, so that none comes again soon.
    [[nodiscard]] tl::expected<std::uint8_t, std::string> open(const control::Branch& branch);
    // Does nothing where the channel has no stream.
    void close(std::uint32_t job, std::uint16_t channel);

    // The packet is rewritten in place where it is to leave again, and keeps its length.
    switchml::Verdict handle_packet(std::span<std::byte> bytes, const wire::Address& from);
    // Of a verdict that sends something.
    [[nodiscard]] const control::Branch& branch_of(std::uint8_t stream) const { return *streams_[stream]->branch; }

    [[nodiscard]] PoolSnapshot snapshot() const;

  private:
    struct Stream {
        const control::Branch* branch = nullptr;
        std::uint32_t job = 0;
        std::uint16_t channel = 0;
    };

    [[nodiscard]] std::optional<std::uint8_t> free_number() const;
    [[nodiscard]] bool names_its_sender(std::span<const std::byte> bytes, const wire::Address& from) const;

    switchml::Switch switch_;
    std::array<std::optional<Stream>, 256> streams_;
    std::uint8_t next_ = 0;
    std::uint64_t strangers_ = 0;  // packets that did not come from the member that they name
};

// As its switch is to admit a channel of such terms, and as its workers are to speak.
[[nodiscard]] switchml::JobConfig stream_config(const wire::ChannelTerms& terms, unsigned workers);

}  // namespace atp::switchml
