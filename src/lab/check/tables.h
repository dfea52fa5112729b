// SPDX-License-Identifier: Apache-2.0
// The hash tables of the checker: open addressing, growth by doubling. Numbers are assigned in the order of insertion,
// from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "check/hashing.h"

namespace atp::check {

inline constexpr std::uint32_t no_number = 0xffffffffU;

// Set of byte strings.
class BytePool {
  public:
    BytePool() : table_(64, no_number), starts_{0} {}

    // Returns the number of `item`, and whether it is new.
    std::pair<std::uint32_t, bool> intern(std::span<const std::byte> item) {
        if ((size() + 1) * 2 > table_.size()) grow();
        const std::uint64_t hash = hash_bytes(item.data(), item.size());
        std::size_t at = hash & (table_.size() - 1);
        for (; table_[at] != no_number; at = (at + 1) & (table_.size() - 1)) {
            if (hashes_[table_[at]] == hash && equal((*this)[table_[at]], item)) return {table_[at], false};
        }
        table_[at] = static_cast<std::uint32_t>(size());
        hashes_.push_back(hash);
        arena_.insert(arena_.end(), item.begin(), item.end());
        starts_.push_back(arena_.size());
        return {table_[at], true};
    }

    // Valid until the next intern().
    [[nodiscard]] std::span<const std::byte> operator[](std::uint32_t number) const {
        return std::span(arena_).subspan(starts_[number], starts_[number + 1] - starts_[number]);
    }
    [[nodiscard]] std::size_t size() const { return hashes_.size(); }

  private:
    static bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
        return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
    }
    void grow() {
        table_.assign(table_.size() * 2, no_number);
        for (std::uint32_t number = 0; number < hashes_.size(); ++number) {
            std::size_t at = hashes_[number] & (table_.size() - 1);
            while (table_[at] != no_number) at = (at + 1) & (table_.size() - 1);
            table_[at] = number;
        }
    }

    std::vector<std::uint32_t> table_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::size_t> starts_;
    std::vector<std::byte> arena_;
};

// Map from 64-bit keys to 32-bit numbers that the caller chooses. no_number is not allowed as a number.
class KeyMap {
  public:
    KeyMap() : keys_(64), numbers_(64, no_number) {}

    // Returns the number of `key`, or no_number.
    [[nodiscard]] std::uint32_t find(std::uint64_t key) const { return numbers_[place(key)]; }
    // Stores `number` for `key` unless the key has a number. Returns the stored number.
    std::uint32_t insert(std::uint64_t key, std::uint32_t number) {
        if ((size_ + 1) * 4 > numbers_.size() * 3) grow();
        const std::size_t at = place(key);
        if (numbers_[at] != no_number) return numbers_[at];
        keys_[at] = key;
        numbers_[at] = number;
        ++size_;
        return number;
    }
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    [[nodiscard]] std::size_t place(std::uint64_t key) const {
        std::size_t at = hash_word(key) & (keys_.size() - 1);
        while (numbers_[at] != no_number && keys_[at] != key) at = (at + 1) & (keys_.size() - 1);
        return at;
    }
    void grow() {
        std::vector<std::uint64_t> keys(keys_.size() * 2);
        std::vector<std::uint32_t> numbers(keys.size(), no_number);
        keys_.swap(keys);
        numbers_.swap(numbers);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (numbers[i] == no_number) continue;
            const std::size_t at = place(keys[i]);
            keys_[at] = keys[i];
            numbers_[at] = numbers[i];
        }
    }

    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> numbers_;
    std::size_t size_ = 0;
};

}  // namespace atp::check
