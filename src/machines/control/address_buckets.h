// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "wire/address.h"

namespace atp::control {

// Events of a rate: one in `each` on average, and as many at once as `most` holds of them.
struct EventRate {
    Duration each{};
    Duration most{};
};

// A token bucket for each host: for an IPv4 address, or an IPv6 network of 64 bits, since a host owns all of it. The
// table has a fixed size. Where two hosts have one place, the later one takes it, and nobody can choose that place
// without the secret.
//
// Threads: none. Failure: none.
class AddressBuckets {
  public:
    static constexpr std::size_t places = 1024;

    AddressBuckets(const Secret& secret, const EventRate& rate) : secret_(secret), rate_(rate), places_(places) {}

    // False: the host has used up its tokens.
    [[nodiscard]] bool take(const wire::Address& from, Time now);

  private:
    struct HostBucket {
        std::uint64_t host = 0;  // keyed hash; 0: free
        TokenBucket bucket;
    };

    Secret secret_;
    EventRate rate_;
    std::vector<HostBucket> places_;
};

// Bounds what strangers make a switch answer: in all, so that packets keep their share of the thread, and while more
// than half of that is in use, for each host, so that one host cannot take the share of the others.
//
// Threads: none. Failure: none.
class AnswerLimit {
  public:
    // An answer costs about 2 us of a thread: 4 % of it in all.
    static constexpr EventRate all{.each = std::chrono::microseconds(50), .most = std::chrono::milliseconds(200)};
    static constexpr EventRate of_a_host{.each = std::chrono::milliseconds(5), .most = std::chrono::seconds(1)};

    explicit AnswerLimit(const Secret& secret) : hosts_(secret, of_a_host) {}

    // False: drop the question.
    [[nodiscard]] bool admit(const wire::Address& from, Time now);
    // As if nothing had been answered yet: for a model that restores states in any order.
    void refill() { answers_ = {}; }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    TokenBucket answers_;
    AddressBuckets hosts_;
    std::uint64_t dropped_ = 0;
};

}  // namespace atp::control
