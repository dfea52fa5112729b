// SPDX-License-Identifier: Apache-2.0
#include "joining/network.h"

#include <algorithm>

namespace atp::joining {
namespace {

constexpr std::uint64_t network_stream = 0x6a03;
constexpr Duration shortest_delay = std::chrono::microseconds(20);

}  // namespace

Network::Network(const NetworkConfig& config) : config_(config), random_(config.seed, network_stream) {}

void Network::send(std::vector<std::byte> bytes, const wire::Address& from, const wire::Address& to, Time now) {
    ++sent_;
    if (!passes(from, to)) return;
    Flight flight{.bytes = std::move(bytes), .from = from, .to = to};
    if (random_.chance(config_.duplicates)) put(flight, now);
    put(std::move(flight), now);
}

void Network::report(const Flight& flight, Time now) {
    const auto last = reported_.find(host_of(flight.to));
    const bool limited =
        config_.limits_reports && last != reported_.end() && now - last->second < std::chrono::seconds(1);
    if (limited || !passes(flight.to, flight.from)) return;
    reported_[host_of(flight.to)] = now;
    Flight report{.bytes = flight.bytes, .from = flight.to, .to = flight.from, .is_report = true};
    put(std::move(report), now);
}

bool Network::passes(const wire::Address& from, const wire::Address& to) {
    return !random_.chance(config_.loss) && !cuts_.contains({host_of(from), host_of(to)});
}

void Network::put(Flight flight, Time now) {
    const auto spread = static_cast<std::uint64_t>((config_.longest_delay - shortest_delay).count());
    flight.arrives = now + shortest_delay + Duration(random_.below(spread));
    flight.order = ++order_;
    flights_.push(std::move(flight));
}

Flight Network::take() {
    Flight flight = flights_.top();
    flights_.pop();
    return flight;
}

wire::SendError send_error_of(const Flight& report) {
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = report.from, .by_network = true};
    error.quoted_bytes = std::min(report.bytes.size(), error.quoted.size());
    std::copy_n(report.bytes.begin(), error.quoted_bytes, error.quoted.begin());
    return error;
}

}  // namespace atp::joining
