// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "endpoint/channel_engine.h"
#include "protocol/membership.h"
#include "wire/control.h"

namespace atp::endpoint {

// What a job requires of its protocol.
struct JobDemands {
    std::uint32_t world = 0;
    bool audit = false;
    bool adaptive_scale = false;
    bool narrow_lanes = false;    // of less than 32 bits
    bool placed_servers = false;  // parameter servers elsewhere than in the last switch
    bool names_racks = false;
    bool multicast = false;
};

// The ranks' side of a protocol other than ATP, for the channels of a whole job. Such a job uses one switch. The
// product has no such protocol: the laboratory registers one to compare it with ATP.
//
// Threads: every method is const and may be called from any thread.
class RankProtocol {
  public:
    virtual ~RankProtocol() = default;

    [[nodiscard]] virtual wire::ChannelProtocol number() const = 0;
    // The demand that the protocol does not meet; nullopt: it meets all demands.
    [[nodiscard]] virtual std::optional<std::string> objection_to(const JobDemands& demands) const = 0;
    // Most lanes of a packet with this UDP payload.
    [[nodiscard]] virtual std::uint32_t lanes_of_payload(std::uint32_t payload_bytes) const = 0;
    // Number of fragments that the switch can hold at a time: the counterpart of aggregators.
    [[nodiscard]] virtual std::uint32_t room_in(const wire::PathSwitch& at) const = 0;
    [[nodiscard]] virtual std::unique_ptr<ChannelEngine> make_engine(const wire::ChannelTerms& terms,
                                                                     const protocol::Place& place) const = 0;
};

}  // namespace atp::endpoint
