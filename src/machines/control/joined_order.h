// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>

#include "wire/control.h"

namespace atp::control {

// Order of the JOINEDs that one member receives: the network may reorder and repeat them. A JOINED that answers a later
// JOIN is newer, whichever process of the switch sent it. Of those that answer one JOIN, the higher number is newer.
struct JoinedOrder {
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;

    // The process that sent `joined` is another one: it counts its JOINEDs from 1.
    [[nodiscard]] bool shows_restart(const wire::Joined& joined) const {
        return joined.epoch > epoch && joined.number <= number;
    }
    // True: `joined` is the newest so far. False: it is old, and the order stays.
    [[nodiscard]] bool advance(const wire::Joined& joined) {
        if (std::tie(joined.epoch, joined.number) <= std::tie(epoch, number)) return false;
        epoch = joined.epoch;
        number = joined.number;
        return true;
    }
};

}  // namespace atp::control
