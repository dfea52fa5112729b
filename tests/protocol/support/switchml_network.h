// SPDX-License-Identifier: Apache-2.0
// Workers of one SwitchML job and their switch, over links that the test controls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "support/integer_tensor.h"
#include "support/packets.h"
#include "switchml/switch.h"
#include "switchml/worker.h"

namespace atp::testing {

// A packet in flight: up to the switch, or down to a worker.
struct SwitchMlFlight {
    bool up = true;
    unsigned worker = 0;  // its sender if `up`, otherwise its receiver
    Bytes bytes;

    [[nodiscard]] switchml::Header header() const;
};

class SwitchMlNetwork {
  public:
    using WorkerEvent = switchml::WorkerEvent;

    explicit SwitchMlNetwork(const switchml::JobConfig& job);

    // Submits the next tensor of `elements` integers to every worker. Each value identifies its worker and element.
    void submit(std::size_t elements, Time deadline = never);

    // Packets in flight, oldest first.
    [[nodiscard]] const std::vector<SwitchMlFlight>& flights() const { return flights_; }
    // Index in flights() of the oldest packet of this worker in this direction. Fails the test if there is no such
    // packet.
    [[nodiscard]] std::size_t find(bool up, unsigned worker) const;
    void deliver(std::size_t at);
    void deliver(bool up, unsigned worker) { deliver(find(up, worker)); }
    void lose(std::size_t at) { flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(at)); }
    void put(SwitchMlFlight flight) { flights_.push_back(std::move(flight)); }
    // Delivers all packets, oldest first, until none is in flight.
    void settle();
    // Advances time so that the timer of every worker expires once.
    void pass_timeout();
    // Delivers packets and advances time until every tensor has ended, for at most `timeouts` timeouts.
    void run(unsigned timeouts = 100);
    // Delivers in random order. Probabilities are in units of 1/256: that a packet is lost, and that a copy of a
    // delivered packet stays in flight.
    struct Chaos {
        unsigned loss = 0;
        unsigned duplicate = 0;
        unsigned steps = 20'000;
        unsigned most_flights = 200;  // with which a timeout still passes at random
    };
    void run(const Chaos& chaos, const std::function<unsigned(unsigned below)>& choose);

    [[nodiscard]] bool done() const;
    // True if every worker has the right sum of every element of every tensor.
    [[nodiscard]] bool sums_are_right() const;
    [[nodiscard]] std::int32_t sum(unsigned worker, std::size_t tensor, std::size_t element) const;
    [[nodiscard]] std::int32_t expected(std::size_t tensor, std::size_t element) const;
    [[nodiscard]] const std::vector<WorkerEvent>& events(unsigned worker) const { return events_[worker]; }
    [[nodiscard]] switchml::Worker& worker(unsigned rank) { return *workers_[rank]; }
    [[nodiscard]] switchml::Switch& machine() { return switch_; }
    [[nodiscard]] Time now() const { return now_; }

  private:
    struct Numbers {
        std::vector<std::int32_t> in;
        std::vector<std::int32_t> out;
        std::unique_ptr<IntegerTensor> tensor;
    };

    void drain(unsigned worker);

    switchml::JobConfig job_;
    switchml::Switch switch_;
    std::vector<std::unique_ptr<switchml::Worker>> workers_;
    std::vector<std::vector<Numbers>> numbers_;  // per worker: its tensors
    std::vector<std::vector<WorkerEvent>> events_;
    std::vector<SwitchMlFlight> flights_;
    Time now_{};
};

}  // namespace atp::testing
