// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::endpoint {

// A control message that waits. Its padding is a number: `bytes` may end anywhere in it.
struct ControlMessage {
    wire::Address from{};
    wire::Ecn ecn = wire::Ecn::not_capable;
    std::vector<std::byte> bytes{};
    std::size_t length = 0;  // of the datagram
};

// What a message costs its sender to forge: the classes of messages that must not delay each other.
enum class ControlClass : std::uint8_t {
    neighbours,  // from an address that belongs to the channel: it has the token
    newcomers,   // JOINs with a cookie: from an address that is proven
    strangers,   // all others: from anywhere
};
inline constexpr std::array control_classes{ControlClass::neighbours, ControlClass::newcomers, ControlClass::strangers};

// Control messages that wait for their turn on the thread of a shard. Each class has a bound of its own, so that a
// flood of one pushes out no message of another.
//
// Threads: none. Failure: a message without room is dropped and counted; its sender repeats it.
class ControlQueue {
  public:
    static constexpr std::size_t most_messages = 1024;
    static constexpr std::size_t most_bytes = 512U << 10U;

    // False: no room.
    bool put(ControlClass of, ControlMessage message) {
        WaitingLine& line = line_of(of);
        if (line.messages.size() >= most_messages || line.bytes + message.bytes.size() > most_bytes) {
            ++lost_;
            return false;
        }
        line.bytes += message.bytes.size();
        line.messages.push_back(std::move(message));
        return true;
    }
    [[nodiscard]] std::optional<ControlMessage> take(ControlClass of) {
        WaitingLine& line = line_of(of);
        if (line.messages.empty()) return std::nullopt;
        ControlMessage message = std::move(line.messages.front());
        line.messages.pop_front();
        line.bytes -= message.bytes.size();
        return message;
    }
    [[nodiscard]] std::size_t messages(ControlClass of) const {
        return lines_[static_cast<std::size_t>(of)].messages.size();
    }
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    struct WaitingLine {
        std::deque<ControlMessage> messages;
        std::size_t bytes = 0;
    };
    [[nodiscard]] WaitingLine& line_of(ControlClass of) { return lines_[static_cast<std::size_t>(of)]; }

    std::array<WaitingLine, control_classes.size()> lines_;
    std::uint64_t lost_ = 0;
};

}  // namespace atp::endpoint
