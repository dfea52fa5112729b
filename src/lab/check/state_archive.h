// SPDX-License-Identifier: Apache-2.0
// The two archives (protocol/archive.h) that save and restore the state of a machine.
//
// States with equal behaviour must have equal bytes. All past times are therefore stored as the same value, and a
// tensor is stored as its number, not as its address. Counts that no machine reads are omitted. Time stamps of
// aggregators are omitted, because ageing is an action that treats any aggregator as old.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "check/model_time.h"
#include "protocol/archive.h"
#include "protocol/tensor.h"

namespace atp::check {

using Bytes = std::vector<std::byte>;
using Tensors = std::span<protocol::Tensor* const>;

inline constexpr std::uint32_t model_now_us = static_cast<std::uint32_t>(model_now.time_since_epoch().count() / 1000);

// Unsigned numbers of 32 and 64 bits are mostly small in a model. They are stored 7 bits a byte, the lowest first.
template <class T>
inline constexpr bool is_wide = std::is_unsigned_v<T> && sizeof(T) >= 4;

class StateWriter {
  public:
    static constexpr bool reads = false;

    // Appends to `out`. `now`: time of the last call of the machine.
    StateWriter(Bytes& out, Time now, Tensors tensors = {}) : out_(out), now_(now), tensors_(tensors) {}

    template <class T>
    void value(T& item) {
        if constexpr (std::is_pointer_v<T>) {
            std::uint8_t number = static_cast<std::uint8_t>(std::ranges::find(tensors_, item) - tensors_.begin());
            value(number);
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            if constexpr (is_wide<T>) {
                append_wide(item);
            } else {
                append(&item, sizeof item);
            }
        }
    }
    void time(Time& item) {
        Moment moment = moment_of(item, now_);
        value(moment);
    }
    void stamp_us(std::uint32_t&) {}
    void unread(auto&) {}
    void bytes(std::span<std::byte> item) { append(item.data(), item.size()); }

  private:
    void append_wide(std::uint64_t item) {
        for (; item >= 0x80; item >>= 7U) out_.push_back(static_cast<std::byte>(item | 0x80));
        out_.push_back(static_cast<std::byte>(item));
    }
    void append(const void* from, std::size_t size) {
        const std::size_t at = out_.size();
        out_.resize(at + size);
        std::memcpy(out_.data() + at, from, size);
    }

    Bytes& out_;
    Time now_;
    Tensors tensors_;
};

class StateReader {
  public:
    static constexpr bool reads = true;

    explicit StateReader(std::span<const std::byte> from, Tensors tensors = {}) : from_(from), tensors_(tensors) {}

    template <class T>
    void value(T& item) {
        if constexpr (std::is_pointer_v<T>) {
            std::uint8_t number = 0;
            value(number);
            item = number < tensors_.size() ? tensors_[number] : nullptr;
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            if constexpr (is_wide<T>) {
                item = static_cast<T>(take_wide());
            } else {
                take(&item, sizeof item);
            }
        }
    }
    void time(Time& item) {
        Moment moment{};
        value(moment);
        item = time_of(moment);
    }
    void stamp_us(std::uint32_t& item) { item = model_now_us; }
    void unread(auto& item) { item = {}; }
    void bytes(std::span<std::byte> item) { take(item.data(), item.size()); }

    [[nodiscard]] bool at_end() const { return from_.empty(); }

  private:
    std::uint64_t take_wide() {
        std::uint64_t item = 0;
        std::size_t at = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = static_cast<std::uint64_t>(from_[at++]);
            item |= (byte & 0x7f) << shift;
            if (byte < 0x80) break;
        }
        from_ = from_.subspan(at);
        return item;
    }
    void take(void* to, std::size_t size) {
        std::memcpy(to, from_.data(), size);
        from_ = from_.subspan(size);
    }

    std::span<const std::byte> from_;
    Tensors tensors_;
};

static_assert(protocol::Archive<StateWriter> && protocol::Archive<StateReader>);

}  // namespace atp::check
