// SPDX-License-Identifier: Apache-2.0
#include "doctor/path_probe.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "client/path_payload.h"
#include "client/switch_client.h"
#include "control/path_mtu_search.h"
#include "doctor/distance.h"
#include "net/clock.h"
#include "net/descriptor.h"
#include "net/interface_mtu.h"
#include "net/local_route.h"
#include "net/random.h"
#include "net/route_mtu.h"

namespace atp::doctor {
namespace {

constexpr std::uint32_t questions = 20;
constexpr std::uint32_t short_train = 1000;
constexpr std::uint32_t short_train_pace = 8;
constexpr std::uint32_t long_train = 200;
constexpr std::uint32_t long_train_pace = 1;
constexpr Duration tick = std::chrono::milliseconds(1);
constexpr std::chrono::milliseconds refusal_wait(200);
constexpr Duration least_wait = std::chrono::milliseconds(100);

// Long enough for each answer that arrives, and short enough to wait for many answers that do not arrive.
Duration longest_wait_of(const PathFacts& facts, Duration timeout) {
    return std::min(timeout, std::max(least_wait, 8 * facts.round_trips.back()));
}

void greet(client::SwitchClient& client, Duration timeout, PathFacts& facts) {
    const Time deadline = net::now() + timeout;
    for (std::uint32_t i = 0; i < questions; ++i) {
        const auto greeting =
            i == 0 ? client.greet(deadline) : client.hello(std::min(deadline, net::now() + timeout / questions));
        if (!greeting) {
            if (i == 0) facts.silence = greeting.error();
            break;
        }
        facts.welcome = greeting->welcome;
        facts.round_trips.push_back(greeting->round_trip);
    }
    std::ranges::sort(facts.round_trips);
}

// Whether the kernel at `address` reports a closed port. Only a connected socket receives that report.
bool nobody_listens(const wire::Address& address) {
    const net::Descriptor socket(::socket(address.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid() || ::connect(socket.number(), address.data(), address.size()) != 0) return false;
    std::array<std::byte, wire::least_question_bytes> bytes{};
    const std::size_t size = wire::encode(wire::Hello{}, bytes, bytes.size());
    if (::send(socket.number(), bytes.data(), size, 0) < 0) return errno == ECONNREFUSED;
    pollfd waiting{.fd = socket.number(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(refusal_wait.count())) <= 0) return false;
    return ::recv(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT) < 0 && errno == ECONNREFUSED;
}

// A packet to an address of this host has that address as its source too.
bool stays_on_this_host(const wire::Address& address) {
    const auto local = net::local_address_towards(address);
    return address.is_loopback() || (local && *local == address.with_port(0));
}

void find_payload(client::SwitchClient& client, Duration timeout, Duration longest_wait, PathFacts& facts) {
    constexpr int attempts = 3;
    const auto mtu = net::route_mtu(facts.address);
    if (!mtu) return;
    facts.interface_payload_bytes =
        std::min(control::payload_of_mtu(*mtu, facts.address.family()), ATP_MAX_PACKET_BYTES);
    const auto ask = [&](std::uint32_t bytes) { return client.probe(bytes, net::now() + timeout, longest_wait); };
    if (const auto payload = client::discover_path_payload(facts.address, ask)) {
        facts.found_payload_bytes = std::min(*payload, ATP_MAX_PACKET_BYTES);
    }
    if (facts.found_payload_bytes >= facts.interface_payload_bytes) return;
    const Time deadline = net::now() + attempts * longest_wait;
    if (const auto received = client.receives(facts.interface_payload_bytes, deadline, longest_wait)) {
        facts.long_question_arrives = *received;
    }
}

}  // namespace

Result<std::unique_ptr<PathProbe>> PathProbe::open(const wire::Address& address) {
    const net::UdpConfig config{.local = wire::Address::any(address.family(), 0),
                                .gso = false,
                                .gro = false,
                                .receive_arena_bytes = 1 << 18,
                                .send_arena_bytes = 1 << 18,
                                .send_packets = 64};
    auto socket = net::UdpSocket::open(config);
    if (!socket) return tl::unexpected(socket.error());
    return std::unique_ptr<PathProbe>(new PathProbe(address, *std::move(socket)));
}

PathProbe::PathProbe(const wire::Address& address, std::unique_ptr<net::UdpSocket> socket)
    : address_(address), socket_(std::move(socket)), hellos_({.peer = address, .first_nonce = net::random_bits()}) {}

Result<TrainReport> PathProbe::run_train(std::uint32_t count, std::uint32_t bytes, std::uint32_t per_millisecond,
                                         Duration longest_wait) {
    Train train(bytes);
    hellos_.begin({.first_bytes = bytes,
                   .bytes = bytes,
                   .count = count,
                   .group = per_millisecond,
                   .interval = tick,
                   .refresh = tick},
                  net::now());
    while (hellos_.sent() < count) {
        if (auto passed = send_due(train); !passed) return tl::unexpected(passed.error());
        take_answers(train, std::min(hellos_.poll_timeout(), net::now() + tick));
    }
    const Time end = net::now() + longest_wait;
    while (!train.complete() && net::now() < end) take_answers(train, std::min(end, net::now() + tick));
    // A duplicate arrives soon after its original.
    take_answers(train, net::now() + tick);
    return train.report();
}

Result<void> PathProbe::send_due(Train& train) {
    const Time now = net::now();
    for (;;) {
        const std::span<std::byte> room = socket_->reserve(hellos_.next_bytes());
        if (room.empty()) return fail(Operation::send, Reason::exhausted, to_string(address_), "");
        const auto size = hellos_.poll_transmit(room, now);
        if (!size) break;
        socket_->commit(*size, address_);
        train.handle_sent();
    }
    const net::Flush flushed = socket_->flush();
    if (flushed.refused != 0) return fail_with_errno(Operation::send, flushed.refusal, to_string(address_));
    return {};
}

void PathProbe::take_answers(Train& train, Time until) {
    std::array<wire::Datagram, 64> datagrams;
    for (Time at = net::now(); at < until; at = net::now()) {
        pollfd waiting{.fd = socket_->descriptor(), .events = POLLIN, .revents = 0};
        const auto left = until - at;
        const timespec time{.tv_sec = 0, .tv_nsec = std::min<long>(left.count(), 999'999'999)};
        if (::ppoll(&waiting, 1, &time, nullptr) <= 0) continue;
        const auto count = socket_->receive(datagrams);
        if (!count) return;
        for (std::size_t i = 0; i < *count; ++i) {
            const auto answer = hellos_.handle_message(datagrams[i].bytes, *datagrams[i].from, at);
            if (answer && answer->number) train.handle_answer(*answer->number, datagrams[i].ecn);
        }
    }
}

namespace {

// A report of the switch, which does not depend on its parent.
std::optional<client::SwitchReport> read_report(client::SwitchClient& client, Duration timeout) {
    const auto text = client.report(net::now() + timeout);
    return text ? client::read_switch_report(*text) : std::nullopt;
}

// The switch counts all HELLOs that it receives. Those of others are few.
std::optional<TrainReport> measure_train(const std::function<std::optional<client::SwitchReport>()>& read,
                                         PathProbe& probe, std::uint32_t count, std::uint32_t bytes,
                                         std::uint32_t per_millisecond, Duration longest_wait) {
    const auto before = read();
    auto train = probe.run_train(count, bytes, per_millisecond, longest_wait);
    if (!train) return std::nullopt;
    const auto after = read();
    if (before && after && after->id == before->id && after->hellos > before->hellos) {
        const std::uint64_t arrived = after->hellos - before->hellos;
        train->arrived = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(arrived, train->answered, train->sent));
    }
    return *train;
}

void measure_distances(PathFacts& facts, Duration longest_wait) {
    facts.routers = count_routers(facts.address, longest_wait);
    if (!facts.report || facts.report->parent.empty()) return;
    const auto parent = wire::Address::parse(facts.report->parent);
    if (parent) facts.routers_to_parent = count_routers(*parent, longest_wait);
}

void measure_trains(client::SwitchClient& client, PathProbe& probe, Duration timeout, Duration longest_wait,
                    const Progress& progress, PathFacts& facts) {
    // A switch that has sent a report sends others: the direction of a loss is worth the whole timeout.
    const auto read = [&] { return facts.report ? read_report(client, timeout) : std::nullopt; };
    const std::string name = to_string(facts.address);
    progress(fmt::format("{}: sending {} short packets", name, short_train));
    facts.short_packets =
        measure_train(read, probe, short_train, wire::least_question_bytes, short_train_pace, longest_wait);
    if (facts.found_payload_bytes == 0) return;
    progress(fmt::format("{}: sending {} packets of {} bytes", name, long_train, facts.found_payload_bytes));
    facts.long_packets =
        measure_train(read, probe, long_train, facts.found_payload_bytes, long_train_pace, longest_wait);
}

}  // namespace

PathFacts measure_path(const wire::Address& address, Duration timeout, const Progress& progress) {
    PathFacts facts;
    facts.address = address;
    facts.stays_on_this_host = stays_on_this_host(address);
    if (const auto local = net::local_address_towards(address)) facts.interface = net::interface_name(*local);
    const std::string name = to_string(address);
    auto client = client::SwitchClient::open(address);
    auto probe = PathProbe::open(address);
    if (!client || !probe) {
        facts.silence = client ? probe.error() : client.error();
        return facts;
    }
    progress(fmt::format("{}: greeting", name));
    greet(**client, timeout, facts);
    const bool hopeless = facts.silence && facts.silence->reason != Reason::rejected;
    if (hopeless) {
        const bool refused = facts.silence->reason == Reason::timed_out && nobody_listens(address);
        if (refused) facts.silence = Error{Operation::join, Reason::refused, ECONNREFUSED, name};
        return facts;
    }
    facts.report = read_report(**client, timeout);
    if (facts.silence) return facts;
    const Duration longest_wait = longest_wait_of(facts, timeout);
    measure_distances(facts, longest_wait);
    progress(fmt::format("{}: measuring the path MTU", name));
    find_payload(**client, timeout, longest_wait, facts);
    facts.reads_marks = (*probe)->reads_marks();
    measure_trains(**client, **probe, timeout, longest_wait, progress, facts);
    // A switch that lost its parent meanwhile refuses each HELLO: the packets were not lost.
    if (const auto greeting = (*client)->hello(net::now() + timeout); !greeting) {
        facts.silence = greeting.error();
        facts.report = read_report(**client, timeout);
    }
    return facts;
}

}  // namespace atp::doctor
