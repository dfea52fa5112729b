// SPDX-License-Identifier: Apache-2.0
// Big-endian integers in memory, and a writer and a reader of consecutive fields. Packets use the functions, control
// messages the classes. All of them are safe in every thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/text.h"

namespace atp::wire {

// The wire is big-endian: on a big-endian host these functions return `value`.
[[nodiscard]] constexpr std::uint16_t swap_from_big_endian(std::uint16_t value) {
    return std::endian::native == std::endian::big ? value : __builtin_bswap16(value);
}
[[nodiscard]] constexpr std::uint32_t swap_from_big_endian(std::uint32_t value) {
    return std::endian::native == std::endian::big ? value : __builtin_bswap32(value);
}
[[nodiscard]] constexpr std::uint64_t swap_from_big_endian(std::uint64_t value) {
    return std::endian::native == std::endian::big ? value : __builtin_bswap64(value);
}
static_assert(std::endian::native == std::endian::big || std::endian::native == std::endian::little,
              "no third byte order is supported");

// Big-endian access to lanes and single fields.
[[nodiscard]] inline std::uint8_t load_u8(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }
[[nodiscard]] inline std::uint16_t load_u16(const std::byte* at) {
    std::uint16_t value;
    std::memcpy(&value, at, sizeof value);
    return swap_from_big_endian(value);
}
[[nodiscard]] inline std::uint32_t load_u32(const std::byte* at) {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return swap_from_big_endian(value);
}
[[nodiscard]] inline std::uint64_t load_u64(const std::byte* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return swap_from_big_endian(value);
}
inline void store_u8(std::byte* at, std::uint8_t value) { *at = std::byte{value}; }
inline void store_u16(std::byte* at, std::uint16_t value) {
    value = swap_from_big_endian(value);
    std::memcpy(at, &value, sizeof value);
}
inline void store_u32(std::byte* at, std::uint32_t value) {
    value = swap_from_big_endian(value);
    std::memcpy(at, &value, sizeof value);
}
inline void store_u64(std::byte* at, std::uint64_t value) {
    value = swap_from_big_endian(value);
    std::memcpy(at, &value, sizeof value);
}

// A field that is one number: an integer, a flag, or an enumerator.
template <class Value>
concept NumberField = std::is_integral_v<Value> || std::is_enum_v<Value>;

// Appends big-endian fields to borrowed memory. If one of them does not fit, finish() returns 0 and later fields are
// not written. A writer ignores limits and rules. It takes them because ByteReader has calls of the same names: a
// function that names the fields of a message once can then write and read it.
class ByteWriter {
  public:
    template <class Value>
    using Of = const Value;

    explicit ByteWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

    template <NumberField Number>
    void field(Number value, std::uint64_t /*least*/ = 0, std::uint64_t /*most*/ = 0) {
        number(static_cast<std::uint64_t>(value), sizeof value);
    }
    void field(double value) { number(std::bit_cast<std::uint64_t>(value), sizeof value); }
    // A length of 2 bytes and then the text, cut to `most` bytes.
    void field(std::string_view value, std::size_t most) {
        value = value.substr(0, most);
        field(static_cast<std::uint16_t>(value.size()));
        field(std::as_bytes(std::span(value)));
    }
    void later(std::string_view value, std::size_t most) { field(value, most); }
    void field(std::span<const std::byte> value) {
        std::byte* const at = take(value.size());
        if (at != nullptr && !value.empty()) std::memcpy(at, value.data(), value.size());
    }
    void zero(std::size_t count) {
        if (std::byte* at = take(count)) std::memset(at, 0, count);
    }
    // Writes how many items of `list` follow, at most `most`, and returns it.
    template <NumberField Number>
    std::size_t count(Number /*width*/, const auto& list, std::size_t /*least*/, std::size_t most) {
        field(static_cast<Number>(std::min(list.size(), most)));
        return std::min(list.size(), most);
    }
    void resize(const auto& /*list*/, int /*count*/) {}
    void one_of(std::uint64_t /*value*/, std::initializer_list<std::uint64_t> /*allowed*/) {}
    void rule(const auto& /*holds*/, const auto& /*value*/) {}
    // Number of bytes written. Zeros pad them to `padded_bytes`.
    [[nodiscard]] std::size_t finish(std::size_t padded_bytes = 0) {
        if (padded_bytes > at_) zero(padded_bytes - at_);
        return fits_ ? at_ : 0;
    }

  private:
    void number(std::uint64_t value, std::size_t size) {
        std::byte* const at = take(size);
        for (std::size_t i = size; at != nullptr && i-- > 0; value >>= 8U) at[i] = static_cast<std::byte>(value);
    }
    std::byte* take(std::size_t count) {
        fits_ = fits_ && count <= bytes_.size() - at_;
        if (!fits_) return nullptr;
        at_ += count;
        return bytes_.data() + at_ - count;
    }

    std::span<std::byte> bytes_;
    std::size_t at_ = 0;
    bool fits_ = true;
};

// Reads big-endian fields from borrowed memory. Beyond the end, and after a field outside its limits, every field reads
// zero and ok() is false.
class ByteReader {
  public:
    template <class Value>
    using Of = Value;

    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <NumberField Number>
    void field(Number& value, std::uint64_t least = 0, std::uint64_t most = UINT64_MAX) {
        const std::uint64_t read = number(sizeof value);
        check(read >= least && read <= most);
        value = static_cast<Number>(read);
    }
    void field(double& value) { value = std::bit_cast<double>(number(sizeof value)); }
    // A text without control characters: it may reach logs and terminals.
    void field(std::string& value, std::size_t most) {
        std::uint16_t size = 0;
        field(size, 0, most);
        const std::byte* const at = take(size);
        value = at == nullptr ? std::string() : printable({reinterpret_cast<const char*>(at), size});
    }
    // A text that may be missing at the end.
    void later(std::string& value, std::size_t most) {
        value.clear();
        if (left() != 0) field(value, most);
    }
    void field(std::span<std::byte> value) {
        const std::byte* const at = take(value.size());
        if (at != nullptr && !value.empty()) std::memcpy(value.data(), at, value.size());
    }
    void zero(std::size_t count) { static_cast<void>(take(count)); }
    // Reads how many items follow, makes room for them in `list`, and returns it.
    template <NumberField Number>
    std::size_t count(Number count, auto& list, std::size_t least, std::size_t most) {
        field(count, least, most);
        list.resize(ok_ ? count : 0);
        return list.size();
    }
    void resize(auto& list, int count) { list.resize(static_cast<std::size_t>(count)); }
    void one_of(std::uint64_t value, std::initializer_list<std::uint64_t> allowed) {
        check(std::ranges::find(allowed, value) != allowed.end());
    }
    void rule(const auto& holds, const auto& value) { check(holds(value)); }
    void check(bool holds) { ok_ = ok_ && holds; }
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  private:
    std::uint64_t number(std::size_t size) {
        const std::byte* const at = take(size);
        std::uint64_t value = 0;
        for (std::size_t i = 0; at != nullptr && i < size; ++i) value = value << 8U | load_u8(at + i);
        return value;
    }
    const std::byte* take(std::size_t count) {
        check(count <= bytes_.size() - at_);
        if (!ok_) return nullptr;
        at_ += count;
        return bytes_.data() + at_ - count;
    }

    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    bool ok_ = true;
};

}  // namespace atp::wire
