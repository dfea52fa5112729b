// SPDX-License-Identifier: Apache-2.0
#include "relay.h"

#include <poll.h>

#include <stdexcept>
#include <utility>

namespace atp::test {
namespace {

constexpr int look_up_ms = 20;
constexpr unsigned overtakers = 4;

std::vector<std::byte> receive(int descriptor, wire::Address& from) {
    std::vector<std::byte> bytes(65'536);
    sockaddr_in6 name{};
    socklen_t size = sizeof name;
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    const ssize_t count = recvfrom(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT, generic, &size);
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    from = wire::Address::from(generic, size);
    return bytes;
}

void send_to(int descriptor, std::span<const std::byte> bytes, const wire::Address& to) {
    static_cast<void>(sendto(descriptor, bytes.data(), bytes.size(), 0, to.data(), to.size()));
}

}  // namespace

net::Descriptor open_on_loopback(wire::Address& address) {
    net::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const wire::Address any = wire::Address::loopback(wire::Family::ipv4, 0);
    const int buffer = 4 << 20;
    const timeval longest_wait{.tv_sec = 10, .tv_usec = 0};  // bounds every wait of a test
    setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &longest_wait, sizeof longest_wait);
    setsockopt(socket.number(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    sockaddr_in6 name{};
    socklen_t size = sizeof name;
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    if (bind(socket.number(), any.data(), any.size()) != 0 || getsockname(socket.number(), generic, &size) != 0) {
        throw std::runtime_error("no socket on the loopback");
    }
    address = wire::Address::from(generic, size);
    return socket;
}

Relay::Relay(const wire::Address& server, Rule rule, Tap tap)
    : server_(server), rule_(std::move(rule)), tap_(std::move(tap)), front_(open_on_loopback(address_)) {
    thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
    stopping_ = true;
    thread_.join();
}

void Relay::send(Way way, const wire::Address& client, std::span<const std::byte> bytes) {
    const std::lock_guard lock(backs_changing_);
    const auto back = backs_.find(client);
    if (back == backs_.end()) return;
    if (way == Way::there) send_to(back->second.number(), bytes, server_);
    if (way == Way::back) send_to(front_.number(), bytes, client);
}

void Relay::run() {
    while (!stopping_) {
        std::vector<pollfd> waiting{{.fd = front_.number(), .events = POLLIN, .revents = 0}};
        for (const auto& [client, socket] : backs_) {
            waiting.push_back({.fd = socket.number(), .events = POLLIN, .revents = 0});
        }
        if (poll(waiting.data(), waiting.size(), look_up_ms) <= 0) continue;
        for (const auto& [client, socket] : backs_) pass_back(client, socket);
        pass_there();
    }
}

void Relay::pass_there() {
    wire::Address from;
    for (auto bytes = receive(front_.number(), from); !bytes.empty(); bytes = receive(front_.number(), from)) {
        if (!backs_.contains(from)) {
            wire::Address ignored;
            const std::lock_guard lock(backs_changing_);
            backs_[from] = open_on_loopback(ignored);
        }
        const int out = backs_[from].number();
        treat(Way::there, from, std::move(bytes), [&](const auto& what) { send_to(out, what, server_); });
    }
}

void Relay::pass_back(const wire::Address& client, const net::Descriptor& socket) {
    wire::Address from;
    for (auto bytes = receive(socket.number(), from); !bytes.empty(); bytes = receive(socket.number(), from)) {
        if (from.with_port(0) != server_.with_port(0)) continue;  // what others send takes no path to the client
        treat(Way::back, client, std::move(bytes), [&](const auto& what) { send_to(front_.number(), what, client); });
    }
}

void Relay::treat(Way way, const wire::Address& client, std::vector<std::byte> bytes,
                  const std::function<void(const std::vector<std::byte>&)>& send) {
    if (tap_) tap_(way, client, bytes);
    Direction& direction = directions_[static_cast<std::size_t>(way)];
    const Disposition disposition = rule_(way, direction.number++, bytes.size());
    if (disposition == Disposition::delay) {
        direction.delayed.push_back({std::move(bytes), 0});
        return;
    }
    if (disposition == Disposition::lose) return;
    send(bytes);
    if (disposition == Disposition::repeat) send(bytes);
    for (Delayed& delayed : direction.delayed) {
        if (++delayed.later == overtakers) send(delayed.bytes);
    }
    std::erase_if(direction.delayed, [](const Delayed& delayed) { return delayed.later == overtakers; });
}

}  // namespace atp::test
