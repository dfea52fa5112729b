// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "random/random.h"
#include "wire/address.h"
#include "wire/send_error.h"

namespace atp::joining {

// A packet, or a report about one, on its way.
struct Flight {
    Time arrives{};
    std::uint64_t order = 0;
    std::vector<std::byte> bytes{};
    wire::Address from{};
    wire::Address to{};
    bool is_report = false;  // to the sender `to`: no process has the port `from`
};

struct NetworkConfig {
    std::uint64_t seed = 1;
    double loss = 0;
    double duplicates = 0;
    Duration longest_delay{};
    bool limits_reports = false;
};

// Datagrams between addresses: lost, repeated and reordered at random. Directions can be cut by host.
//
// Threads: none. Failure: none.
class Network {
  public:
    explicit Network(const NetworkConfig& config);

    void send(std::vector<std::byte> bytes, const wire::Address& from, const wire::Address& to, Time now);
    // The host of `flight.to` has no process with that port: reports it to the sender, unless it reported just now.
    void report(const Flight& flight, Time now);
    // From the host of one address to the host of the other.
    void cut(const wire::Address& from, const wire::Address& to) { cuts_.insert({host_of(from), host_of(to)}); }
    void heal() { cuts_.clear(); }

    [[nodiscard]] Time next() const { return flights_.empty() ? never : flights_.top().arrives; }
    // Requires next() != never.
    [[nodiscard]] Flight take();
    [[nodiscard]] std::uint64_t sent() const { return sent_; }

  private:
    struct Later {
        bool operator()(const Flight& a, const Flight& b) const {
            return a.arrives != b.arrives ? a.arrives > b.arrives : a.order > b.order;
        }
    };
    [[nodiscard]] static wire::Address host_of(const wire::Address& address) { return address.with_port(0); }
    [[nodiscard]] bool passes(const wire::Address& from, const wire::Address& to);
    void put(Flight flight, Time now);

    NetworkConfig config_;
    Random random_;
    std::set<std::pair<wire::Address, wire::Address>> cuts_;
    std::map<wire::Address, Time> reported_;  // by host: its last report
    std::priority_queue<Flight, std::vector<Flight>, Later> flights_;
    std::uint64_t sent_ = 0;
    std::uint64_t order_ = 0;
};

// The report as the sender's socket returns it.
[[nodiscard]] wire::SendError send_error_of(const Flight& report);

}  // namespace atp::joining
