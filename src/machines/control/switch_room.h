// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "control/channel_key.h"

namespace atp::control {

// Limits the jobs and channels that a switch serves at a time. Several trees may share one room. A job with channels in
// several trees counts once.
//
// Calling order: one give_back() for each take() that returned `granted`.
// Threads: none. A driver whose threads share a room overrides both calls with a lock.
// Failure: take() returns the limit that is reached, and then counts nothing.
class SwitchRoom {
  public:
    enum class RoomAnswer : std::uint8_t { granted, no_channel, no_job };

    SwitchRoom(std::uint32_t jobs, std::uint32_t channels) : most_jobs_(jobs), most_channels_(channels) {}
    SwitchRoom(const SwitchRoom&) = delete;
    SwitchRoom& operator=(const SwitchRoom&) = delete;
    virtual ~SwitchRoom() = default;

    // Counts one channel of the job, and the job with its first channel.
    [[nodiscard]] virtual RoomAnswer take(const JobKey& job);
    virtual void give_back(const JobKey& job);
    // Half of the jobs or of the channels are in use.
    [[nodiscard]] virtual bool is_half_full() const;

  private:
    const std::uint32_t most_jobs_;
    const std::uint32_t most_channels_;
    std::map<JobKey, std::uint32_t> channels_of_jobs_;
    std::uint32_t channels_ = 0;
};

}  // namespace atp::control
