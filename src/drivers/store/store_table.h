// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "store/store_refusal.h"

namespace atp::store {

struct StoreLimits {
    std::size_t keys = std::size_t{1} << 20;
    std::size_t bytes = std::size_t{64} << 20;  // of all keys and values together
};

[[nodiscard]] Outcome<void> check_key(std::string_view key);
[[nodiscard]] Outcome<void> check_keys(std::span<const std::string> keys);
[[nodiscard]] Outcome<void> check_value(std::string_view value);

// The keys and values of a store, bounded by StoreLimits. The table never waits for a key.
//
// Ownership: owns the keys and values. Calling order: any. Threads: none; callers need a lock.
// Failure: a refused call returns the reason and changes nothing.
class StoreTable {
  public:
    explicit StoreTable(const StoreLimits& limits) : limits_(limits) {}

    [[nodiscard]] Outcome<void> set(std::string_view key, std::string_view value);
    [[nodiscard]] Outcome<std::int64_t> add(std::string_view key, std::int64_t delta);
    // nullptr: not set. Valid until the next change of the table.
    [[nodiscard]] const std::string* find(std::string_view key) const;
    std::size_t remove(std::string_view prefix);

    [[nodiscard]] std::size_t keys() const { return values_.size(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  private:
    StoreLimits limits_;
    std::map<std::string, std::string, std::less<>> values_;
    std::size_t bytes_ = 0;
};

}  // namespace atp::store
