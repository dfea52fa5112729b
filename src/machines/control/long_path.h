// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "control/failure_detector.h"
#include "control/timing.h"

namespace atp::control {

// Whether the longest packets of a channel reach a neighbour that answers short messages. A link with a smaller MTU, or
// one that drops long packets, need not report them. Three of four JOINs of a ready channel are therefore as long as
// its packets: the epoch of a JOINED shows which JOIN arrived.
//
// Ownership: owns its state.
// Calling order: handle_*() for what happened.
// Threads: none. Failure: none.
class LongPath {
  public:
    // The length of the JOIN with this epoch. `packet_bytes`: of the longest packet.
    [[nodiscard]] static std::uint32_t join_bytes(std::uint32_t epoch, std::uint32_t packet_bytes) {
        return is_long(epoch) ? packet_bytes : 0;
    }

    // Such a JOIN was sent.
    void handle_sent(std::uint32_t epoch, Time now) {
        if (is_long(epoch)) detector_.handle_asked(now);
    }
    // A JOINED to the JOIN with this epoch.
    void handle_joined(std::uint32_t epoch, Time now) {
        if (is_long(epoch)) detector_.handle_received(now);
    }
    // Packets of that length passed in both directions.
    void handle_passed(Time now) { detector_.handle_received(now); }
    void handle_own_pause(Duration pause) { detector_.handle_own_pause(pause); }
    // No long JOIN is sent now.
    void forget() { detector_ = FailureDetector(FailureDetector::Peer::answers); }

    // For `hold` nothing long passed and no long JOIN was answered, but a short one was. `received_at`: anything from
    // the neighbour.
    [[nodiscard]] bool is_narrow(Time received_at, Duration hold, Time now) const {
        const Duration between_short = join_period * refresh_of(hold) + timing.late;
        return now - received_at <= between_short && detector_.assess(now, hold) == FailureDetector::State::silent;
    }
    [[nodiscard]] Duration lasted(Time now) const { return detector_.lasted(now); }

    template <protocol::Archive Archive>
    void persist(Archive& archive) {
        detector_.persist(archive);
    }

  private:
    static constexpr std::uint32_t join_period = 4;
    [[nodiscard]] static bool is_long(std::uint32_t epoch) { return epoch % join_period != 0; }

    FailureDetector detector_{FailureDetector::Peer::answers};
};

}  // namespace atp::control
