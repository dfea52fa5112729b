// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "wire/address.h"

namespace atp::switchd {

// A control message for another shard.
struct QueuedMessage {
    wire::Address from;
    std::vector<std::byte> bytes;
};

// Control messages between the threads of a switch. Threads: any.
// Failure: if 1,024 messages wait, a further one is counted and dropped; its sender repeats it.
class Mailbox {
  public:
    static constexpr std::size_t most_messages = 1024;

    // False: the message was dropped.
    bool put(QueuedMessage message) {
        const std::scoped_lock lock(mutex_);
        if (messages_.size() >= most_messages) {
            ++lost_;
            return false;
        }
        messages_.push_back(std::move(message));
        return true;
    }
    [[nodiscard]] std::vector<QueuedMessage> take_all() {
        const std::scoped_lock lock(mutex_);
        return std::exchange(messages_, {});
    }
    [[nodiscard]] std::uint64_t lost() const {
        const std::scoped_lock lock(mutex_);
        return lost_;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<QueuedMessage> messages_;
    std::uint64_t lost_ = 0;
};

}  // namespace atp::switchd
