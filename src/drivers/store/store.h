// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace atp::store {

inline constexpr std::size_t max_key_bytes = 256;  // and at least one
inline constexpr std::size_t max_value_bytes = std::size_t{64} * 1024;

// Where ranks find each other: keys and values that all of them see. Small things, seldom: addresses, tokens, arrivals.
//
// Keys and values are any bytes. What is set stays until it is set again or removed.
// Deadlines are of net::now()'s clock. One that has passed looks once and does not wait.
// Threads: see each store; close() is for any thread, at any time, on all of them.
// Failure: Operation::rendezvous, with the server's address where there is one, and
//   timed_out   a deadline passed; the text names the keys that are still missing, `elapsed` says how long it waited
//   too_large   a key or a value; the store stays good
//   exhausted   the store is full; likewise
//   rejected    add() to what is no number, or past the range of numbers; likewise
//   closed      the store ended, by close() or because the other end left; it stays so.
class Store {
  public:
    virtual ~Store() = default;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] virtual Result<void> set(std::string_view key, std::string_view value) = 0;
    // Adds to the number that the key holds in decimal digits, 0 where there is none yet; the sum. No two calls of any
    // ranks see the same moment.
    [[nodiscard]] virtual Result<std::int64_t> add(std::string_view key, std::int64_t delta) = 0;

    // Waits until all the keys are there.
    [[nodiscard]] virtual Result<void> wait(std::span<const std::string> keys, Time deadline) = 0;
    // Likewise; then their values, in the order of the keys.
    [[nodiscard]] virtual Result<std::vector<std::string>> get_all(std::span<const std::string> keys,
                                                                   Time deadline) = 0;
    [[nodiscard]] Result<std::string> get(std::string_view key, Time deadline);
    // Those that are not there now, in their order.
    [[nodiscard]] virtual Result<std::vector<std::string>> missing(std::span<const std::string> keys) = 0;

    // All keys that begin so; how many there were. Who waits for one of them goes on waiting.
    [[nodiscard]] virtual Result<std::size_t> remove(std::string_view prefix) = 0;

    // Ends this end of the store: calls under way and those to come fail with Reason::closed.
    virtual void close() noexcept = 0;

  protected:
    Store() = default;
};

}  // namespace atp::store
