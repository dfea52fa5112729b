// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "net/descriptor.h"
#include "wire/address.h"

namespace atp::test {

enum class Way : std::uint8_t { there, back };
enum class Disposition : std::uint8_t { pass, lose, repeat, delay };  // delay: until four later datagrams have passed

// Relays datagrams between clients and one UDP server, and loses, repeats or delays them as `fate` decides. It clears
// the ECN bits.
//
// Ownership: owns its sockets and a thread, which the destructor ends.
// Threads: `fate` runs on that thread. Numbers count each direction from 0.
class Relay {
  public:
    using Rule = std::function<Disposition(Way way, unsigned number, std::size_t bytes)>;

    Relay(const wire::Address& server, Rule rule);
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    [[nodiscard]] const wire::Address& address() const { return address_; }

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
    void treat(Way way, std::vector<std::byte> bytes, const std::function<void(const std::vector<std::byte>&)>& send);

    wire::Address server_;
    Rule rule_;
    wire::Address address_;
    net::Descriptor front_;
    std::map<wire::Address, net::Descriptor> backs_;
    Direction directions_[2];
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

// Opens a UDP socket on any free port of loopback and stores its address.
net::Descriptor open_on_loopback(wire::Address& address);

}  // namespace atp::test
