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

// The scales for the fragments of an operation that is repeated. Each fragment uses the scale that fits its last sum.
//
// All ranks have the same sums, so they choose the same scales without a message. A fragment needs the scale from the
// previous operation, so it waits until that operation has the result of the same fragment. Apart from that, two
// operations of one kind may be in flight at once, on any channels.
//
// Ownership: owns the scales; shares `feed`.
// Calling order: begin() for each operation, in the order of operations. Then, for each fragment, settled() until it
//   returns true, scale() any number of times, and settle() once.
// Threads: begin() under the caller's lock; all other calls from any thread. Failure: none.
class ScaleHistory {
  public:
    ScaleHistory(std::uint64_t elements, std::uint64_t elements_of_fragment, std::shared_ptr<protocol::Waker> feed)
        : fragment_(elements_of_fragment),
          places_((elements + elements_of_fragment - 1) / elements_of_fragment),
          feed_(std::move(feed)) {}

    // Returns the number of the next operation, modulo 2^24.
    [[nodiscard]] std::uint32_t begin() { return begun_++ & rounds_mask; }
    // True: the operation before number `round` has the result of the fragment at this element. After it returned
    // false, settle() calls advance() of the feed, since the answer may have changed.
    [[nodiscard]] bool settled(std::uint64_t first, std::uint32_t round);
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const {
        return static_cast<std::uint8_t>(place(first).load(std::memory_order_acquire));
    }
    // Records that the fragment has its result, and the scale for the next operation.
    void settle(std::uint64_t first, std::uint8_t scale);

  private:
    // The scale in the low 8 bits, the number of results modulo 2^24 above it.
    using Place = std::atomic<std::uint32_t>;
    static constexpr unsigned scale_bits = 8;
    static constexpr std::uint32_t rounds_mask = (1U << (32 - scale_bits)) - 1;

    [[nodiscard]] const Place& place(std::uint64_t first) const { return places_[first / fragment_]; }
    [[nodiscard]] std::uint32_t rounds(std::uint64_t first) const { return place(first).load() >> scale_bits; }

    std::uint64_t fragment_;     // elements
    std::vector<Place> places_;  // by fragment
    std::shared_ptr<protocol::Waker> feed_;
    std::uint32_t begun_ = 0;               // operations
    std::atomic<bool> waited_for_ = false;  // settled() returned false since the last advance()
};

}  // namespace atp::tensor
