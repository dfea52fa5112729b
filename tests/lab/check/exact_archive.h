// SPDX-License-Identifier: Apache-2.0
// Saves and restores the state of a machine as bytes: everything that persist() names. The archives of the model
// checker omit some of it; these omit nothing.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/time.h"
#include "check/state_archive.h"

namespace atp::check {

// Writes all that persist() names unchanged: real times, real addresses.
class ExactWriter {
  public:
    static constexpr bool reads = false;

    template <class T>
    void value(T& item) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are saved as they are
        append(&item, sizeof item);
    }
    void time(Time& item) { value(item); }
    void stamp_us(std::uint32_t& item) { value(item); }
    void unread(auto& item) { value(item); }
    void bytes(std::span<std::byte> item) { append(item.data(), item.size()); }
    Bytes out;

  private:
    void append(const void* from, std::size_t size) {
        const auto* at = static_cast<const std::byte*>(from);
        out.insert(out.end(), at, at + size);
    }
};

class ExactReader {
  public:
    static constexpr bool reads = true;

    explicit ExactReader(std::span<const std::byte> from) : from_(from) {}
    template <class T>
    void value(T& item) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are saved as they are
        take(&item, sizeof item);
    }
    void time(Time& item) { value(item); }
    void stamp_us(std::uint32_t& item) { value(item); }
    void unread(auto& item) { value(item); }
    void bytes(std::span<std::byte> item) { take(item.data(), item.size()); }

  private:
    void take(void* to, std::size_t size) {
        ASSERT_LE(size, from_.size());
        std::memcpy(to, from_.data(), size);
        from_ = from_.subspan(size);
    }
    std::span<const std::byte> from_;
};

template <class Machine>
Bytes exact_state(Machine& machine) {
    ExactWriter writer;
    machine.persist(writer);
    return writer.out;
}

// Restores the original's state into a newly constructed machine.
template <class Machine>
void put_back(Machine& original, Machine& shadow) {
    const Bytes state = exact_state(original);
    ExactReader reader(state);
    shadow.persist(reader);
    ASSERT_EQ(exact_state(shadow), state);
}

}  // namespace atp::check
