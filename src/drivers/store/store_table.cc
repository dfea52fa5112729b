// SPDX-License-Identifier: Apache-2.0
#include "store/store_table.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "store/store.h"

namespace atp::store {
namespace {

std::optional<std::int64_t> to_number(std::string_view text) {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || at != end) return std::nullopt;
    return number;
}

}  // namespace

Outcome<void> check_key(std::string_view key) {
    // errors.md, calls, malformed
    if (key.empty()) return refuse(StoreStatus::malformed, "the key is empty; use 1 or more bytes");
    if (key.size() <= max_key_bytes) return {};
    // errors.md, calls, too large: the name of the communicator is a part of its keys
    return refuse(StoreStatus::too_large, fmt::format("the key has {} bytes; the limit is {}: '{}...'", key.size(),
                                                      max_key_bytes, key.substr(0, 32)));
}

Outcome<void> check_keys(std::span<const std::string> keys) {
    for (const std::string& key : keys) {
        if (auto checked = check_key(key); !checked) return checked;
    }
    return {};
}

Outcome<void> check_value(std::string_view value) {
    if (value.size() <= max_value_bytes) return {};
    return refuse(StoreStatus::too_large,
                  // errors.md, calls, too large
                  fmt::format("the value has {} bytes; the limit is {}", value.size(), max_value_bytes));
}

Outcome<void> StoreTable::set(std::string_view key, std::string_view value) {
    if (auto checked = check_key(key); !checked) return checked;
    if (auto checked = check_value(value); !checked) return checked;
    const auto at = values_.find(key);
    const bool is_new = at == values_.end();
    if (is_new && values_.size() >= limits_.keys) {
        // errors.md, forms, exhausted: ever new groups, or another program, use this store
        return refuse(StoreStatus::exhausted, fmt::format("the store is full: it holds {} keys", limits_.keys));
    }
    const std::size_t others = is_new ? bytes_ + key.size() : bytes_ - at->second.size();
    if (others + value.size() > limits_.bytes) {
        return refuse(StoreStatus::exhausted,
                      // errors.md, forms, exhausted: ever new groups, or another program, use this store
                      fmt::format("the store is full: it holds {} of {} bytes", bytes_, limits_.bytes));
    }
    if (is_new) {
        values_.emplace(key, value);
    } else {
        at->second = value;
    }
    bytes_ = others + value.size();
    return {};
}

Outcome<std::int64_t> StoreTable::add(std::string_view key, std::int64_t delta) {
    std::int64_t sum = delta;
    if (const std::string* const held = find(key); held != nullptr) {
        const auto before = to_number(*held);
        if (!before) return refuse(StoreStatus::rejected, fmt::format("the value of '{}' is not a number", key));
        if (__builtin_add_overflow(*before, delta, &sum)) {
            return refuse(StoreStatus::rejected, fmt::format("the sum at '{}' does not fit 64 bits", key));
        }
    }
    if (const auto stored = set(key, std::to_string(sum)); !stored) return tl::unexpected<StoreRefusal>(stored.error());
    return sum;
}

const std::string* StoreTable::find(std::string_view key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : &at->second;
}

std::size_t StoreTable::remove(std::string_view prefix) {
    std::size_t removed = 0;
    auto at = values_.lower_bound(prefix);
    while (at != values_.end() && std::string_view(at->first).starts_with(prefix)) {
        bytes_ -= at->first.size() + at->second.size();
        at = values_.erase(at);
        ++removed;
    }
    return removed;
}

}  // namespace atp::store
