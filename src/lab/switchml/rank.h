// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/time.h"
#include "endpoint/rank_protocol.h"
#include "switchml/job.h"

namespace atp::switchml {

// SwitchML for the ranks of a job: each channel is a job of SwitchML (see StreamPool).
class Rank final : public endpoint::RankProtocol {
  public:
    // `resend_after`, above 0: a worker resends a packet that has no result after this time.
    explicit Rank(Mode mode, Duration resend_after = std::chrono::milliseconds(1));

    [[nodiscard]] wire::ChannelProtocol number() const override;
    [[nodiscard]] std::optional<std::string> objection_to(const endpoint::JobDemands& demands) const override;
    [[nodiscard]] std::uint32_t lanes_of_payload(std::uint32_t payload_bytes) const override;
    [[nodiscard]] std::uint32_t room_in(const wire::PathSwitch& at) const override;
    [[nodiscard]] std::unique_ptr<endpoint::ChannelEngine> make_engine(const wire::ChannelTerms& terms,
                                                                       const protocol::Place& place) const override;

  private:
    Mode mode_;
    Duration resend_after_;
};

}  // namespace atp::switchml
