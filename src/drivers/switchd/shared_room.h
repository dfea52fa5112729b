// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "control/switch_room.h"

namespace atp::switchd {

// The room of a switch whose threads have one tree each. Threads: any; called when members join, and when channels
// close.
class SharedRoom final : public control::SwitchRoom {
  public:
    using SwitchRoom::SwitchRoom;

    [[nodiscard]] RoomAnswer take(const control::JobKey& job, const control::Owner& owner, Time now,
                                  bool may_end) override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::take(job, owner, now, may_end);
    }
    void give_back(const control::JobKey& job) override {
        const std::scoped_lock lock(mutex_);
        SwitchRoom::give_back(job);
    }
    void protect(const control::JobKey& job, Time until) override {
        const std::scoped_lock lock(mutex_);
        SwitchRoom::protect(job, until);
    }
    [[nodiscard]] bool has_ending() const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::has_ending();
    }
    [[nodiscard]] bool must_end(const control::JobKey& job) const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::must_end(job);
    }
    [[nodiscard]] Use use_of(const control::Owner& owner) const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::use_of(owner);
    }
    void set_tenants(std::shared_ptr<const control::Tenants> tenants) override {
        const std::scoped_lock lock(mutex_);
        SwitchRoom::set_tenants(std::move(tenants));
    }
    [[nodiscard]] bool is_half_full() const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::is_half_full();
    }
    void drain(bool drains) override {
        const std::scoped_lock lock(mutex_);
        SwitchRoom::drain(drains);
    }
    [[nodiscard]] bool drains() const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::drains();
    }
    [[nodiscard]] std::uint32_t jobs() const override {
        const std::scoped_lock lock(mutex_);
        return SwitchRoom::jobs();
    }

  private:
    mutable std::mutex mutex_;
};

}  // namespace atp::switchd
