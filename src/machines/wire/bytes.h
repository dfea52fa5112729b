// SPDX-License-Identifier: Apache-2.0
// Big-endian integers in memory, and a writer and a reader of consecutive fields. Packets use the functions, control
// messages the classes. All of them are safe in every thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

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

// Appends big-endian fields to borrowed memory. If one of them does not fit, finish() returns 0 and later fields are
// not written.
class ByteWriter {
  public:
    explicit ByteWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

    void u8(std::uint8_t value) {
        if (std::byte* at = take(1)) store_u8(at, value);
    }
    void u16(std::uint16_t value) {
        if (std::byte* at = take(2)) store_u16(at, value);
    }
    void u32(std::uint32_t value) {
        if (std::byte* at = take(4)) store_u32(at, value);
    }
    void u64(std::uint64_t value) {
        if (std::byte* at = take(8)) store_u64(at, value);
    }
    void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
    void flag(bool value) { u8(value ? 1 : 0); }
    void zero(std::size_t count) {
        if (std::byte* at = take(count)) std::memset(at, 0, count);
    }
    // Writes a length of 2 bytes and then the text, cut to `most` bytes.
    void text(std::string_view value, std::size_t most) {
        value = value.substr(0, most);
        u16(static_cast<std::uint16_t>(value.size()));
        if (std::byte* at = take(value.size())) std::memcpy(at, value.data(), value.size());
    }
    void raw(std::span<const std::byte> value) {
        if (std::byte* at = take(value.size())) std::memcpy(at, value.data(), value.size());
    }
    // Number of bytes written. Zeros pad them to `padded_bytes`.
    [[nodiscard]] std::size_t finish(std::size_t padded_bytes = 0) {
        if (padded_bytes > at_) zero(padded_bytes - at_);
        return fits_ ? at_ : 0;
    }

  private:
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

// Reads big-endian fields from borrowed memory. Beyond the end, and after a failed check(), every field reads zero and
// ok() is false.
class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::uint8_t u8() {
        const std::byte* at = take(1);
        return at == nullptr ? std::uint8_t{0} : load_u8(at);
    }
    std::uint16_t u16() {
        const std::byte* at = take(2);
        return at == nullptr ? std::uint16_t{0} : load_u16(at);
    }
    std::uint32_t u32() {
        const std::byte* at = take(4);
        return at == nullptr ? 0U : load_u32(at);
    }
    std::uint64_t u64() {
        const std::byte* at = take(8);
        return at == nullptr ? std::uint64_t{0} : load_u64(at);
    }
    double f64() { return std::bit_cast<double>(u64()); }
    bool flag() { return u8() != 0; }
    void skip(std::size_t count) { static_cast<void>(take(count)); }
    std::string text(std::size_t most) {
        const std::size_t size = u16();
        check(size <= most);
        const std::byte* at = take(size);
        return at == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(at), size);
    }
    void raw(std::span<std::byte> into) {
        if (const std::byte* at = take(into.size())) std::memcpy(into.data(), at, into.size());
    }
    void check(bool holds) { ok_ = ok_ && holds; }
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  private:
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
