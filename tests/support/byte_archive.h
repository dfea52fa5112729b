// SPDX-License-Identifier: Apache-2.0
// Saves and loads the state of a machine through its persist(). See protocol/archive.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/time.h"

namespace atp::testing {

class ByteWriter {
  public:
    static constexpr bool reads = false;

    template <class T>
    void value(T& field) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes(std::as_writable_bytes(std::span(&field, 1)));
    }
    void time(Time& at) { value(at); }
    void stamp_us(std::uint32_t& stamp) { value(stamp); }
    void unread(auto& field) { value(field); }
    void bytes(std::span<std::byte> field) { state.insert(state.end(), field.begin(), field.end()); }

    std::vector<std::byte> state;
};

class ByteReader {
  public:
    static constexpr bool reads = true;

    explicit ByteReader(std::span<const std::byte> state) : state_(state) {}

    template <class T>
    void value(T& field) {
        bytes(std::as_writable_bytes(std::span(&field, 1)));
    }
    void time(Time& at) { value(at); }
    void stamp_us(std::uint32_t& stamp) { value(stamp); }
    void unread(auto& field) { value(field); }
    void bytes(std::span<std::byte> field) {
        if (field.size() > state_.size()) throw std::logic_error("the state ends too early");
        if (!field.empty()) std::memcpy(field.data(), state_.data(), field.size());
        state_ = state_.subspan(field.size());
    }
    [[nodiscard]] bool at_end() const { return state_.empty(); }

  private:
    std::span<const std::byte> state_;
};

template <class Machine>
std::vector<std::byte> state_of(Machine& machine) {
    ByteWriter writer;
    machine.persist(writer);
    return writer.state;
}

// Copies the state of `from` to `to`. Returns false if `to` did not read all bytes, or saves others.
template <class Machine>
bool copy_state(Machine& from, Machine& to) {
    const std::vector<std::byte> state = state_of(from);
    ByteReader reader(state);
    to.persist(reader);
    return reader.at_end() && state_of(to) == state;
}

}  // namespace atp::testing
