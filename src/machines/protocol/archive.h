// SPDX-License-Identifier: Apache-2.0
// How a state machine shows its whole state. Each machine has one member template
//
//     template <class Archive> void persist(Archive& archive);
//
// that names every field that can change after construction, in a fixed order, by archive.value(field) and
// archive.time(field), loops over its arrays, and touches nothing else. One function serves saving, loading and
// hashing: the model checker snapshots machines with it, a trace prints them, and a test fails when a field is
// forgotten.
//
// An archive offers:
//     value(T&)   for integers, enums, bools and trivially copyable records without padding
//     time(Time&) for points in time, so that an archive may store them relative to now
//     stamp_us(uint32_t&) for wrapping time stamps in microseconds, likewise
//     bytes(span) for lanes
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace atp::protocol {

template <class A>
concept Archive = requires(A& archive, int& value, Time& time, std::uint32_t& stamp, std::span<std::byte> bytes) {
    archive.value(value);
    archive.stamp_us(stamp);
    archive.time(time);
    archive.bytes(bytes);
};

}  // namespace atp::protocol
