// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "net/descriptor.h"
#include "wire/address.h"

namespace atp::test {

enum class Way : std::uint8_t { there, back };
enum class Disposition : std::uint8_t { pass, lose, repeat, delay };  // delay: until four later datagrams have passed

// Relays datagrams between clients and one UDP server, and loses, repeats or delays them as `rule` decides. It clears
// the ECN bits. A `tap` sees each datagram first, and may change it.
//
// Ownership: owns its sockets and a thread, which the destructor ends.
// Threads: `rule` and `tap` run on that thread, and any thread calls send(). Numbers count each direction from 0.
class Relay {
  public:
    using Rule = std::function<Disposition(Way way, unsigned number, std::size_t bytes)>;
    using Tap = std::function<void(Way way, const wire::Address& client, std::vector<std::byte>& bytes)>;

    Relay(const wire::Address& server, Rule rule, Tap tap = {});
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    [[nodiscard]] const wire::Address& address() const { return address_; }
    // In the name of a client that has sent something, or of the server to that client. Others get nothing.
    void send(Way way, const wire::Address& client, std::span<const std::byte> bytes);

  private:
    struct Delayed {
        std::vector<std::byte> bytes;
        unsigned later = 0;
    };
    struct Direction {
        unsigned number = 0;
        std::vector<Delayed> delayed;
    };

    void run();
    void pass_there();
    void pass_back(const wire::Address& client, const net::Descriptor& socket);
    void treat(Way way, const wire::Address& client, std::vector<std::byte> bytes,
               const std::function<void(const std::vector<std::byte>&)>& send);

    wire::Address server_;
    Rule rule_;
    Tap tap_;
    wire::Address address_;
    net::Descriptor front_;
    std::mutex backs_changing_;
    std::map<wire::Address, net::Descriptor> backs_;  // only grows, on the thread of this relay
    Direction directions_[2];
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

// Opens a UDP socket on any free port of loopback and stores its address.
net::Descriptor open_on_loopback(wire::Address& address);

}  // namespace atp::test
