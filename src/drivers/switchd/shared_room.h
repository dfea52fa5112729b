// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "control/switch_room.h"

namespace atp::switchd {

// The room of a switch whose threads have one tree each. Threads: any; called only when channels open, close or wait.
class SharedRoom final : public control::SwitchRoom {
  public:
    using SwitchRoom::SwitchRoom;

    [[nodiscard]] RoomAnswer take(const control::JobKey& job) override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::take(job);
    }
    void give_back(const control::JobKey& job) override {
        const std::scoped_lock lock(mutex_);
        SwitchRoom::give_back(job);
    }

    [[nodiscard]] bool is_half_full() const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::is_half_full();
    }

  private:
    mutable std::mutex mutex_;
};

}  // namespace atp::switchd
