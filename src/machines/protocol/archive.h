// SPDX-License-Identifier: Apache-2.0
// How a state machine exposes its whole state. A machine that the model checker can save has a template
//
//     template <class Archive> void persist(Archive& archive);
//
// It passes every field that can change after construction to archive.value(field) or archive.time(field), in a fixed
// order and with loops over arrays, and changes nothing else. One function serves saving, loading and hashing. The
// model checker saves, loads and hashes states with it, and a test fails if a field is missing.
//
// An archive offers:
//     reads       whether it restores a state, as opposed to saving it
//     value(T&)   for integers, enums, bools and trivially copyable records without padding
//     time(Time&) for points in time, which an archive may store relative to now
//     stamp_us(uint32_t&) for wrapping time stamps in microseconds, which it may store relative to now too
//     unread(T&)  for what only measurements of time, reports for users and pauses between repetitions read: an archive
//                 may omit it, and then restores T{}
//     bytes(span) for lanes
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace atp::protocol {

template <class A>
concept Archive = requires(A& archive, int& value, Time& time, std::uint32_t& stamp, std::uint8_t& count,
                           std::span<std::byte> bytes) {
    { A::reads } -> std::convertible_to<bool>;
    archive.value(value);
    archive.stamp_us(stamp);
    archive.unread(count);
    archive.time(time);
    archive.bytes(bytes);
};

}  // namespace atp::protocol
