// SPDX-License-Identifier: Apache-2.0
// Measures the way to a switch. path_checks.h judges what was found.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/switch_report.h"
#include "doctor/train.h"
#include "net/udp_socket.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::doctor {

// What is being waited for, for whoever looks on.
using Progress = std::function<void(std::string_view)>;

struct PathFacts {
    wire::Address address;
    std::optional<Error> silence;  // why the switch does not greet; then only `report` may be known
    wire::Welcome welcome;
    std::vector<Duration> round_trips;  // ascending; at least one where it greets
    std::optional<client::SwitchReport> report;
    bool stays_on_this_host = false;  // the way there is the loopback's, whatever the address

    std::uint32_t interface_payload_bytes = 0;  // what this host's own interface carries; 0: unknown
    std::uint32_t found_payload_bytes = 0;      // what arrives there and comes back; 0: unknown
    // Where the latter is less: whether a packet of the former arrives, which a short answer tells.
    std::optional<bool> long_question_arrives;

    bool reads_marks = false;  // the kernel tells ECN bits
    std::optional<TrainReport> short_packets;
    std::optional<TrainReport> long_packets;
};

// Sends questions of its own, numbered, marked ECT(0), never in fragments.
//
// Owns: a socket. Threads: one. Failure: of the socket or the route; packets that are lost are no failure.
class PathProbe {
  public:
    [[nodiscard]] static Result<std::unique_ptr<PathProbe>> open(const wire::Address& address);

    // `count` HELLOs of `bytes`, `per_millisecond` of them, then waits for what is missing, `patience` long at most.
    [[nodiscard]] Result<TrainReport> run_train(std::uint32_t count, std::uint32_t bytes, std::uint32_t per_millisecond,
                                                Duration patience);
    // Whether the switch answers a question of so many bytes whose answer is short.
    [[nodiscard]] Result<bool> hears(std::uint32_t bytes, Duration patience);

    [[nodiscard]] bool reads_marks() const { return socket_->report().in_use(net::Feature::ecn); }

  private:
    PathProbe(const wire::Address& address, std::unique_ptr<net::UdpSocket> socket);

    void take_answers(Train& train, std::uint64_t first, Time until);

    wire::Address address_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::uint64_t next_nonce_;
};

// Everything, one after the other. No single answer is waited for longer than `timeout`.
[[nodiscard]] PathFacts measure_path(const wire::Address& address, Duration timeout, const Progress& progress);

}  // namespace atp::doctor
