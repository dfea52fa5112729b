// SPDX-License-Identifier: Apache-2.0
#include "emulation/emulated_transport.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "net/clock.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::emulation {
namespace {

using Json = nlohmann::ordered_json;

// A packet with a shorter delay departs at once, because timers are too coarse for it.
constexpr Duration port_early = std::chrono::microseconds(50);

PortTableConfig port_config(const EmulatedTransportConfig& config) {
    PortTableConfig ports = config.ports;
    ports.in.early = ports.out.early = port_early;
    ports.seed += config.number;
    return ports;
}

bool passes_at_once(std::span<const std::byte> bytes) {
    return wire::control_type(bytes).has_value() || wire::foreign_version(bytes).has_value();
}

Json json_of(const PortCounters& port) {
    return {{"passed", port.passed},
            {"bytes", port.bytes},
            {"marked", port.marked},
            {"dropped_full", port.dropped_full},
            {"dropped_loss", port.dropped_loss}};
}

}  // namespace

Result<std::unique_ptr<net::Transport>> EmulatedTransport::open(const net::UdpConfig& udp,
                                                                const EmulatedTransportConfig& config) {
    auto socket = net::UdpSocket::open(udp);
    if (!socket) return tl::unexpected(socket.error());
    return std::make_unique<EmulatedTransport>(*std::move(socket), config);
}

EmulatedTransport::EmulatedTransport(std::unique_ptr<net::Transport> socket, const EmulatedTransportConfig& config)
    : socket_(std::move(socket)),
      ports_(port_config(config)),
      held_(config.held_packets, wire::max_udp_payload_bytes),
      reserved_(net::allocate_aligned(wire::max_udp_payload_bytes)) {}

// ---------------------------------------------------------------------------------------------------------- Receiving

// A held packet that is due is returned alone, because it is valid only until the next pop_due().
Result<std::size_t> EmulatedTransport::receive(std::span<wire::Datagram> datagrams) {
    const Time now = net::now();
    while (const auto held = held_.pop_due(now)) {
        if (held->purpose == DelayedFor::processing) {
            from_ = held->peer;
            datagrams.front() = {
                .bytes = held->bytes, .capacity = held->capacity, .from = &from_, .ecn = held->ecn, .truncated = false};
            return 1;
        }
        send_copy(held->bytes, held->peer, held->ecn);
    }
    ports_.forget_idle(now);
    while (true) {
        auto count = socket_->receive(datagrams);
        if (!count || *count == 0) return count;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < *count; ++i) {
            if (admits(datagrams[i], now)) datagrams[kept++] = datagrams[i];
        }
        if (kept != 0) return kept;
    }
}

bool EmulatedTransport::admits(wire::Datagram& datagram, Time now) {
    if (passes_at_once(datagram.bytes)) return true;
    EmulatedPort* const port = ports_.in(*datagram.from, now);
    if (port == nullptr) return false;
    const Admission admission = port->admit(static_cast<std::uint32_t>(datagram.bytes.size()), now);
    if (admission.mark) datagram.ecn = wire::Ecn::congested;
    if (admission.verdict == Verdict::hold &&
        !held_.hold(datagram.bytes, *datagram.from, datagram.ecn, DelayedFor::processing, admission.departs)) {
        ++unheld_;
    }
    return admission.verdict == Verdict::pass_now;
}

// ------------------------------------------------------------------------------------------------------------ Sending

std::span<std::byte> EmulatedTransport::reserve(std::size_t max_bytes) {
    return {reserved_.get(), std::min<std::size_t>(max_bytes, wire::max_udp_payload_bytes)};
}

void EmulatedTransport::commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) {
    last_ = {reserved_.get(), bytes};
    last_ecn_ = ecn;
    send(last_, to, ecn);
}

bool EmulatedTransport::borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    last_ = bytes;
    last_ecn_ = ecn;
    send(bytes, to, ecn);
    return true;
}

bool EmulatedTransport::repeat(const wire::Address& to) {
    send(last_, to, last_ecn_);
    return true;
}

void EmulatedTransport::send(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    if (passes_at_once(bytes)) {
        send_copy(bytes, to, ecn);
        return;
    }
    const Time now = net::now();
    EmulatedPort* const port = ports_.out(to, now);
    if (port == nullptr) return;
    const Admission admission = port->admit(static_cast<std::uint32_t>(bytes.size()), now);
    if (admission.mark) ecn = wire::Ecn::congested;
    if (admission.verdict == Verdict::pass_now) send_copy(bytes, to, ecn);
    if (admission.verdict == Verdict::hold && !held_.hold(bytes, to, ecn, DelayedFor::sending, admission.departs)) {
        ++unheld_;
    }
}

void EmulatedTransport::send_copy(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    std::span<std::byte> room = socket_->reserve(bytes.size());
    if (room.empty()) {
        socket_->flush();
        room = socket_->reserve(bytes.size());
    }
    if (room.empty()) {
        ++unheld_;
        return;
    }
    std::memcpy(room.data(), bytes.data(), bytes.size());
    socket_->commit(bytes.size(), to, ecn);
}

// ------------------------------------------------------------------------------------------------------------- Report

std::string EmulatedTransport::report_parts() const {
    Json ports = Json::array();
    for (const PeerPorts& port : ports_.peers()) {
        ports.push_back(
            {{"peer", to_string(port.peer)}, {"in", json_of(port.counters.in)}, {"out", json_of(port.counters.out)}});
    }
    return Json{{"ports", ports}, {"unheld", unheld_}}.dump();
}

std::string report_of(const PortTableConfig& config) {
    const PortConfig& port = config.in;  // both directions are equal
    return Json{{"emulated_ports",
                 {{"rate_bps", port.rate_bits_per_s},
                  {"queue_bytes", port.queue_bytes},
                  {"ecn_bytes", port.ecn_bytes},
                  {"loss", port.loss}}}}
        .dump();
}

}  // namespace atp::emulation
