// SPDX-License-Identifier: Apache-2.0
// Measures the path to a switch. path_checks.h evaluates the facts.
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
#include "control/hello_client.h"
#include "doctor/train.h"
#include "net/udp_socket.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::doctor {

// Receives a text that names the check in progress.
using Progress = std::function<void(std::string_view)>;

struct PathFacts {
    wire::Address address;
    // Why the switch does not answer HELLO, or does not any more; then only `report` may be known.
    std::optional<Error> silence;
    wire::Welcome welcome;
    std::vector<Duration> round_trips;  // ascending; at least one if the switch answers HELLO
    std::optional<client::SwitchReport> report;
    bool stays_on_this_host = false;  // the route is the loopback interface
    std::string interface;            // of this host, towards the switch; empty: unknown
    // Routers between this host and the switch, and between this host and the switch's parent; nullopt: unknown.
    std::optional<unsigned> routers;
    std::optional<unsigned> routers_to_parent;

    std::uint32_t interface_payload_bytes = 0;  // longest payload of this host's interface; 0: unknown
    std::uint32_t found_payload_bytes = 0;      // longest payload that arrives and comes back; 0: unknown
    // If found_payload_bytes is less than interface_payload_bytes: whether a HELLO of interface_payload_bytes arrives.
    // A short answer shows that it does.
    std::optional<bool> long_question_arrives;

    bool reads_marks = false;  // the kernel reports ECN bits
    std::optional<TrainReport> short_packets;
    std::optional<TrainReport> long_packets;
};

// Sends numbered questions (HELLO) to a switch, marked ECT(0) and never fragmented.
//
// Ownership: owns a socket.
// Threads: one.
// Failure: a call fails if the socket or the route fails; lost packets are no failure.
class PathProbe {
  public:
    [[nodiscard]] static Result<std::unique_ptr<PathProbe>> open(const wire::Address& address);

    // Sends `count` HELLOs of `bytes`, `per_millisecond` per ms, then waits at most `longest_wait` for missing answers.
    [[nodiscard]] Result<TrainReport> run_train(std::uint32_t count, std::uint32_t bytes, std::uint32_t per_millisecond,
                                                Duration longest_wait);

    [[nodiscard]] bool reads_marks() const { return socket_->report().in_use(net::Feature::ecn); }

  private:
    PathProbe(const wire::Address& address, std::unique_ptr<net::UdpSocket> socket);

    // Sends the HELLOs that are due.
    [[nodiscard]] Result<void> send_due(Train& train);
    void take_answers(Train& train, Time until);

    wire::Address address_;
    std::unique_ptr<net::UdpSocket> socket_;
    control::HelloClient hellos_;
};

// Runs all measurements in turn. Waits at most `timeout` for each answer.
[[nodiscard]] PathFacts measure_path(const wire::Address& address, Duration timeout, const Progress& progress);

}  // namespace atp::doctor
