// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/siphash.h"
#include "base/token_bucket.h"
#include "control/address_buckets.h"
#include "endpoint/control_queue.h"

namespace atp::switchd {

// When the control messages of a shard have their turn. Each class has a share of the thread's time, so that a flood of
// one delays neither the others nor packets. While newcomers wait, each host has a rate, so that one host cannot keep
// the others out.
//
// Calling order: put() for each message. In each round, next() until it returns nothing or the round is long enough;
//   charge() after each.
// Threads: none. Failure: as endpoint::ControlQueue.
class ControlTurns {
  public:
    explicit ControlTurns(const Secret& secret) : hosts_(secret, of_a_host) {}

    void put(endpoint::ControlClass of, endpoint::ControlMessage message, Time now) {
        const bool loaded = of == endpoint::ControlClass::newcomers && queue_.messages(of) > many_newcomers;
        if (loaded && !hosts_.take(message.from, now)) {
            ++limited_;
        } else {
            queue_.put(of, std::move(message));
        }
    }
    // One of each class in turn, of those that have time left.
    [[nodiscard]] std::optional<endpoint::ControlMessage> next(Time now) {
        for (std::size_t tried = 0; tried < shares.size(); ++tried) {
            last_ = (last_ + 1) % shares.size();
            if (!spent_[last_].has(Duration::zero(), shares[last_].most, now)) continue;
            if (auto message = queue_.take(endpoint::control_classes[last_])) return message;
        }
        return std::nullopt;
    }
    // What the message of the last next() cost.
    void charge(Duration cost, Time now) { spent_[last_].charge(shares[last_].per_second * cost, now); }
    // When next() returns a message; never: none waits.
    [[nodiscard]] Time poll_timeout() const {
        Time next = never;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            if (queue_.messages(endpoint::control_classes[i]) == 0) continue;
            next = std::min(next, spent_[i].ready_at(Duration::zero(), shares[i].most));
        }
        return next;
    }
    [[nodiscard]] std::uint64_t lost() const { return queue_.lost() + limited_; }

  private:
    // Of the time of a thread, a class has one part in `per_second`, and `most` of that at once.
    struct Share {
        int per_second = 1;
        Duration most{};
    };
    // Members of a large job refresh 256 channels 12 times in `--hold`. Newcomers are many when jobs start.
    static constexpr std::array<Share, endpoint::control_classes.size()> shares{{
        {.per_second = 2, .most = std::chrono::milliseconds(20)},
        {.per_second = 8, .most = std::chrono::milliseconds(80)},
        {.per_second = 32, .most = std::chrono::milliseconds(80)},
    }};
    // Ranks of one host, with all their channels, join at once.
    static constexpr std::size_t many_newcomers = endpoint::ControlQueue::most_messages / 2;
    static constexpr control::EventRate of_a_host{.each = std::chrono::milliseconds(5),
                                                  .most = std::chrono::milliseconds(1280)};

    endpoint::ControlQueue queue_;
    control::AddressBuckets hosts_;
    std::array<TokenBucket, shares.size()> spent_;
    std::size_t last_ = 0;
    std::uint64_t limited_ = 0;
};

}  // namespace atp::switchd
