// SPDX-License-Identifier: Apache-2.0
// The bytes of a fuzzer as a sequence of choices. After the last byte every choice is 0, so every input gives a
// complete run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace atp::fuzz {

using Bytes = std::vector<std::byte>;

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    [[nodiscard]] std::uint8_t byte() {
        if (bytes_.empty()) return 0;
        const std::uint8_t first = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return first;
    }
    [[nodiscard]] std::uint32_t word() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) value = value << 8U | byte();
        return value;
    }
    // A number in [0, count); `count` is at most 256.
    [[nodiscard]] std::uint32_t below(std::uint32_t count) { return byte() % count; }
    // At most `most` bytes, in a buffer of exactly that size, so that a sanitizer detects a read past the end.
    [[nodiscard]] Bytes some_bytes(std::size_t most) {
        return take(std::min({std::size_t{byte()}, most, bytes_.size()}));
    }
    // All bytes that are left, in such a buffer.
    [[nodiscard]] Bytes rest() { return take(bytes_.size()); }

  private:
    [[nodiscard]] Bytes take(std::size_t count) {
        Bytes taken(count);
        for (std::byte& to : taken) to = std::byte{byte()};
        return taken;
    }

    std::span<const std::uint8_t> bytes_;
};

// One run of the fuzz target. Each target defines it; target.cc calls it.
void run(Input& input);

}  // namespace atp::fuzz
