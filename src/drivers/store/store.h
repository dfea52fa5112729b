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

inline constexpr std::size_t max_key_bytes = 256;  // at least 1
inline constexpr std::size_t max_value_bytes = std::size_t{64} * 1024;

// Keys and values that all ranks share while they form a communicator: addresses, tokens, arrivals. It is made for
// small values and rare calls.
//
// Keys and values are arbitrary bytes. A value stays until it is set again or removed. Deadlines use the clock of
// net::now(). If a deadline has passed already, a call checks once and does not wait.
// Calling order: any. Threads: see each store. Any thread may call close() at any time on every store.
// Failure: Operation::rendezvous, with the address of the server if there is one, and
//   timed_out   the deadline passed; the text names the missing keys, `elapsed` is the time waited
//   too_large   a key or a value is too long; the store remains usable
//   exhausted   the store is full; the store remains usable
//   rejected    add() to a value that is no number, or beyond 64 bits; the store remains usable
//   closed      close() was called, or the peer left; every later call fails too.
class Store {
  public:
    virtual ~Store() = default;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] virtual Result<void> set(std::string_view key, std::string_view value) = 0;
    // Adds to the decimal number at the key, which is 0 if the key is missing, and returns the sum. The call is atomic:
    // if two ranks add 1, they get different sums.
    [[nodiscard]] virtual Result<std::int64_t> add(std::string_view key, std::int64_t delta) = 0;

    // Waits until all keys are set.
    [[nodiscard]] virtual Result<void> wait(std::span<const std::string> keys, Time deadline) = 0;
    // Waits until all keys are set, and returns their values in the order of the keys.
    [[nodiscard]] virtual Result<std::vector<std::string>> get_all(std::span<const std::string> keys,
                                                                   Time deadline) = 0;
    [[nodiscard]] Result<std::string> get(std::string_view key, Time deadline);
    // Returns the keys that are not set now, in the given order.
    [[nodiscard]] virtual Result<std::vector<std::string>> missing(std::span<const std::string> keys) = 0;

    // Removes all keys with this prefix and returns how many. Ranks that wait for one of them continue to wait.
    [[nodiscard]] virtual Result<std::size_t> remove(std::string_view prefix) = 0;

    // Closes this end of the store: calls in progress and later calls fail with Reason::closed.
    virtual void close() noexcept = 0;

  protected:
    Store() = default;
};

}  // namespace atp::store
