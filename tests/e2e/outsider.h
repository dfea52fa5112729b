// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <span>

#include "net/descriptor.h"
#include "values.h"
#include "wire/joining_message.h"

namespace atp::test {

[[nodiscard]] sockaddr_in ipv4(const char* host, std::uint16_t port);

// A host beside those of the job. Its address on loopback is 127.0.0.2, theirs is 127.0.0.1.
class Outsider {
  public:
    Outsider();

    void send(std::span<const std::byte> bytes, const wire::Address& to);
    template <class Message>
    void say(const Message& message, const wire::Address& to) {
        Bytes bytes(2048);
        bytes.resize(wire::encode(message, bytes));
        send(bytes, to);
    }
    // Empty: nothing arrived in time.
    [[nodiscard]] Bytes receive(int at_most_ms) const { return receive(socket_, at_most_ms); }
    // Joins with the cookie that the switch sends to this address, and returns the answer.
    [[nodiscard]] Bytes join(wire::Join join, const wire::Address& to);

    // Joins the group by IGMP, as any host may.
    [[nodiscard]] static net::Descriptor listener(const wire::Address& group);
    [[nodiscard]] static Bytes receive(const net::Descriptor& from, int at_most_ms);
    [[nodiscard]] static net::Descriptor bound(const sockaddr_in& at);

    std::uint64_t sent_bytes = 0;

  private:
    net::Descriptor socket_;
    std::uint64_t cookie_ = 0;
    std::uint32_t epoch_ = 0;
};

}  // namespace atp::test
