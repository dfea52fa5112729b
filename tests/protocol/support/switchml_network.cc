// SPDX-License-Identifier: Apache-2.0
#include "support/switchml_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace atp::testing {

using namespace atp::switchml;

switchml::Header SwitchMlFlight::header() const {
    Bytes copy = bytes;
    switchml::Packet packet;
    EXPECT_EQ(switchml::decode(copy, packet), switchml::DecodeError::none);
    return packet.header;
}

SwitchMlNetwork::SwitchMlNetwork(const JobConfig& job)
    : job_(job), switch_({.slots = job.slots(), .lanes = job.lanes}), numbers_(job.workers), events_(job.workers) {
    EXPECT_TRUE(switch_.admit(job));
    for (std::uint8_t rank = 0; rank < job.workers; ++rank) {
        WorkerConfig config;
        config.job = job;
        config.rank = rank;
        workers_.push_back(std::make_unique<Worker>(config));
    }
}

void SwitchMlNetwork::submit(std::size_t elements, Time deadline) {
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
        Numbers& made = numbers_[rank].emplace_back();
        const auto tensor = static_cast<std::int32_t>(numbers_[rank].size());
        made.in.resize(elements);
        made.out.resize(elements);
        for (std::size_t i = 0; i < elements; ++i) {
            made.in[i] = (1 << 4 * rank) * (1 + (static_cast<std::int32_t>(i) + tensor) % 7);
        }
        made.tensor = std::make_unique<IntegerTensor>(made.in, made.out);
        EXPECT_TRUE(workers_[rank]->submit(*made.tensor, now_, deadline));
        drain(rank);
    }
}

void SwitchMlNetwork::drain(unsigned worker) {
    Bytes buffer(workers_[worker]->packet_bytes());
    while (workers_[worker]->poll_transmit(buffer, now_)) flights_.push_back({true, worker, buffer});
    while (const auto event = workers_[worker]->poll_event()) events_[worker].push_back(*event);
}

std::size_t SwitchMlNetwork::find(bool up, unsigned worker) const {
    const auto found = std::ranges::find_if(
        flights_, [&](const SwitchMlFlight& flight) { return flight.up == up && flight.worker == worker; });
    if (found == flights_.end()) {
        ADD_FAILURE() << "no packet in flight " << (up ? "from" : "to") << " worker " << worker;
        return 0;
    }
    return static_cast<std::size_t>(found - flights_.begin());
}

void SwitchMlNetwork::deliver(std::size_t at) {
    if (at >= flights_.size()) return;
    SwitchMlFlight flight = std::move(flights_[at]);
    lose(at);
    if (!flight.up) {
        workers_[flight.worker]->handle_packet(flight.bytes, false, now_);
        drain(flight.worker);
        return;
    }
    const Verdict verdict = switch_.handle_packet(flight.bytes);
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
        const bool meant =
            verdict.route == Route::everybody || (verdict.route == Route::worker && verdict.worker == rank);
        if (meant) flights_.push_back({false, rank, flight.bytes});
    }
}

void SwitchMlNetwork::settle() {
    constexpr unsigned far_too_many = 1'000'000;
    for (unsigned delivered = 0; !flights_.empty(); ++delivered) {
        ASSERT_LT(delivered, far_too_many) << "too many deliveries: packets multiply without end";
        deliver(0);
    }
}

void SwitchMlNetwork::pass_timeout() {
    now_ += workers_[0]->config().timeout;
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
        workers_[rank]->handle_timeout(now_);
        drain(rank);
    }
}

void SwitchMlNetwork::run(unsigned timeouts) {
    settle();
    for (unsigned passed = 0; passed < timeouts && !done(); ++passed) {
        pass_timeout();
        settle();
    }
}

void SwitchMlNetwork::run(const Chaos& chaos, const std::function<unsigned(unsigned)>& choose) {
    for (unsigned step = 0; step < chaos.steps && !done(); ++step) {
        // Without the bound, resent packets would accumulate faster than they are delivered.
        if (flights_.empty() || (flights_.size() < chaos.most_flights && choose(16) == 0)) {
            pass_timeout();
            continue;
        }
        const std::size_t at = choose(static_cast<unsigned>(flights_.size()));
        const unsigned dice = choose(256);
        if (dice < chaos.loss) {
            lose(at);
            continue;
        }
        if (dice < chaos.loss + chaos.duplicate) flights_.push_back(flights_[at]);
        deliver(at);
    }
}

bool SwitchMlNetwork::done() const {
    return std::ranges::all_of(workers_, [](const auto& worker) { return worker->idle(); });
}

std::int32_t SwitchMlNetwork::sum(unsigned worker, std::size_t tensor, std::size_t element) const {
    return numbers_[worker][tensor].out[element];
}

std::int32_t SwitchMlNetwork::expected(std::size_t tensor, std::size_t element) const {
    std::int32_t sum = 0;
    for (const auto& of_worker : numbers_) sum += of_worker[tensor].in[element];
    return sum;
}

bool SwitchMlNetwork::sums_are_right() const {
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
        for (std::size_t tensor = 0; tensor < numbers_[rank].size(); ++tensor) {
            for (std::size_t i = 0; i < numbers_[rank][tensor].in.size(); ++i) {
                if (sum(rank, tensor, i) != expected(tensor, i)) return false;
            }
        }
    }
    return true;
}

}  // namespace atp::testing
