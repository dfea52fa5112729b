// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::check {

// One event of the whole system.
struct Action {
    enum class Kind : std::uint8_t {
        deliver,
        lose,
        duplicate,  // deliver, and keep a copy in flight
        deliver_aged,
        deliver_marked,
        timeout,
        restart,
        crash,
        deadline,  // used in healed runs only
        tick,      // with a clock: time passes for all nodes
        change,    // of the slices of a switch
    };
    Kind kind = Kind::deliver;
    std::uint16_t at = 0;  // index among the packets in flight, or number of the node

    [[nodiscard]] bool is_packet() const { return kind <= Kind::deliver_marked; }
    [[nodiscard]] std::uint16_t code() const {
        return static_cast<std::uint16_t>(static_cast<unsigned>(kind) << 12U | at);
    }
    [[nodiscard]] static Action of(std::uint16_t code) {
        return {static_cast<Kind>(code >> 12U), static_cast<std::uint16_t>(code & 0xfffU)};
    }
};

}  // namespace atp::check
