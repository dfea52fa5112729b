// SPDX-License-Identifier: Apache-2.0
// As state_archive.h, for nodes that measure time: points in time are saved relative to now.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "check/state_archive.h"

namespace atp::check {

namespace clock_archive {

using Microseconds = std::chrono::duration<std::int32_t, std::micro>;
inline constexpr std::int32_t saved_never = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int32_t saved_unset = std::numeric_limits<std::int32_t>::min();
// Longer ago than any time that a machine waits. Older times are equal.
inline constexpr Duration longest_past = std::chrono::seconds(5);

}  // namespace clock_archive

class ClockWriter : public StateWriter {
  public:
    ClockWriter(Bytes& out, Time now) : StateWriter(out, now), now_(now) {}

    void time(Time& item) {
        using namespace clock_archive;
        std::int32_t saved = saved_never;
        if (item == Time{}) {
            saved = saved_unset;
        } else if (item != never) {
            saved = std::chrono::duration_cast<Microseconds>(std::max(item - now_, -longest_past)).count();
        }
        value(saved);
    }

  private:
    Time now_;
};

class ClockReader : public StateReader {
  public:
    explicit ClockReader(std::span<const std::byte> from) : StateReader(from) {}

    void time(Time& item) {
        using namespace clock_archive;
        std::int32_t saved = 0;
        value(saved);
        item = saved == saved_never ? never : saved == saved_unset ? Time{} : model_now + Microseconds(saved);
    }
};

static_assert(protocol::Archive<ClockWriter> && protocol::Archive<ClockReader>);

}  // namespace atp::check
