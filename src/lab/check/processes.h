// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "check/configuration.h"
#include "check/flight.h"
#include "check/layout.h"
#include "check/system.h"
#include "check/truth.h"
#include "host/packet_list.h"
#include "host/rank_host.h"
#include "host/switch_host.h"
#include "protocol/aggregator_index.h"
#include "protocol/channel.h"
#include "protocol/variant.h"
#include "wire/datagram.h"

namespace atp::check {

namespace ATP_VARIANT {

// The job before the one that is explored, whose packets may still be in flight.
struct Incarnation {
    bool earlier = false;
    std::uint32_t first_seq = 0;
};

// The hash of the protocol, with as many base slots as the configuration says.
class BaseSlots final : public protocol::IndexRule {
  public:
    explicit BaseSlots(std::uint32_t most) : most_(most) {}
    [[nodiscard]] std::uint32_t base_slots(std::uint32_t slots) const override { return std::min(slots, most_); }
    [[nodiscard]] std::uint32_t index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                      std::uint32_t attempt) const override {
        const std::uint32_t seed = protocol::index_seed(channel.job, channel.token, channel.channel);
        return protocol::aggregator_index(seed, slot, attempt, channel.aggregators);
    }

  private:
    std::uint32_t most_;
};

// Base of the systems whose nodes are processes of lab/host: how each is configured, and where its packets go.
class Processes : public System {
  public:
    [[nodiscard]] unsigned nodes() const override { return layout_.size(); }
    [[nodiscard]] NodeKind kind(unsigned node) const override { return layout_.node(node).kind; }
    [[nodiscard]] std::string name(unsigned node) const override { return layout_.name(node); }
    [[nodiscard]] bool is_command(std::span<const std::byte> packet) const override {
        return Flight::of(packet).is_order();
    }
    [[nodiscard]] std::string describe(std::span<const std::byte> packet) const override;

  protected:
    Processes(const Configuration& configuration, const Incarnation& incarnation);

    [[nodiscard]] endpoint::ChannelMachineConfig config_of_rank(unsigned job, unsigned rank) const;
    // `boots`: earlier starts of this switch.
    [[nodiscard]] host::SwitchHostConfig config_of_switch(unsigned node, unsigned boots) const;
    // The packet of `flight`, in a buffer where the receiver may change it, and make it longer.
    [[nodiscard]] wire::Datagram datagram_of(const Flight& flight, Input input);
    [[nodiscard]] Sent sent_from(unsigned from, const host::PacketList::ListedPacket& packet) const;

    Configuration configuration_;
    Layout layout_;
    std::shared_ptr<const protocol::Membership> membership_;
    BaseSlots indices_;
    Truth truth_;
    Incarnation incarnation_;
    host::PacketList out_;

  private:
    std::array<std::byte, 512> buffer_{};
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
