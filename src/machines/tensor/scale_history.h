// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/fragment_format.h"
#include "protocol/waker.h"

namespace atp::tensor {

// What scale fits each fragment of an operation that is done again and again: the one that fits its last sum.
//
// All ranks have the same sums, so they choose the same scales without a word about it. An operation takes the scales
// that the one before it left: so a fragment waits for the result of the same fragment of the operation before. Two
// operations of one kind may otherwise be under way at once, on any channels.
// Calling order: begin() for each operation, in the order of operations. Of a fragment then settled(), until it is
// true; scale(), as often as wanted; settle(), once.
// Threads: begin() under the caller's lock; all else any.
class ScaleHistory {
  public:
    ScaleHistory(std::uint64_t elements, std::uint64_t elements_of_fragment, std::shared_ptr<protocol::Waker> feed)
        : fragment_(elements_of_fragment),
          places_((elements + elements_of_fragment - 1) / elements_of_fragment),
          feed_(std::move(feed)) {}

    // The number of the next operation.
    [[nodiscard]] std::uint32_t begin() { return begun_++ & rounds_mask; }
    // Whether the operation before number `round` has its result of the fragment at this element. Who is told no hears
    // by the feed when that may have changed.
    [[nodiscard]] bool settled(std::uint64_t first, std::uint32_t round);
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const {
        return static_cast<std::uint8_t>(place(first).load(std::memory_order_acquire));
    }
    // The result is there, and this is the scale for the next operation.
    void settle(std::uint64_t first, std::uint8_t scale);

  private:
    // The scale, and above it how many results there were.
    using Place = std::atomic<std::uint32_t>;
    static constexpr unsigned scale_bits = 8;
    static constexpr std::uint32_t rounds_mask = (1U << (32 - scale_bits)) - 1;

    [[nodiscard]] const Place& place(std::uint64_t first) const { return places_[first / fragment_]; }
    [[nodiscard]] std::uint32_t rounds(std::uint64_t first) const { return place(first).load() >> scale_bits; }

    std::uint64_t fragment_;
    std::vector<Place> places_;
    std::shared_ptr<protocol::Waker> feed_;
    std::uint32_t begun_ = 0;
    std::atomic<bool> waited_for_ = false;
};

}  // namespace atp::tensor
