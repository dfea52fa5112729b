// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "endpoint/control_queue.h"
#include "wire/control.h"

namespace atp::switchd {

// Control messages between the threads of a switch. A thread empties its mailbox in each round, and only then finds out
// which messages come from members. Until then, JOINs with a cookie have room of their own. Threads: any.
// Failure: a message without room is counted and dropped; its sender repeats it.
class Mailbox {
  public:
    // False: the message was dropped.
    bool put(endpoint::ControlMessage message) {
        const bool joins = wire::control_type(message.bytes) == wire::ControlType::join;
        const auto of = joins ? endpoint::ControlClass::newcomers : endpoint::ControlClass::strangers;
        const std::scoped_lock lock(mutex_);
        return waiting_.put(of, std::move(message));
    }
    // Calls `visit` with each message, in the order of its class.
    template <class Visit>
    void take_all(Visit&& visit) {
        for (const endpoint::ControlClass of : endpoint::control_classes) {
            while (auto message = take(of)) visit(*std::move(message));
        }
    }
    [[nodiscard]] std::uint64_t lost() const {
        const std::scoped_lock lock(mutex_);
        return waiting_.lost();
    }

  private:
    [[nodiscard]] std::optional<endpoint::ControlMessage> take(endpoint::ControlClass of) {
        const std::scoped_lock lock(mutex_);
        return waiting_.take(of);
    }

    mutable std::mutex mutex_;
    endpoint::ControlQueue waiting_;
};

}  // namespace atp::switchd
