// SPDX-License-Identifier: Apache-2.0
#include "client/switch_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "net/clock.h"

namespace atp::client {
namespace {

constexpr Duration ask_again = std::chrono::milliseconds(200);

}  // namespace

Result<std::unique_ptr<SwitchClient>> SwitchClient::open(const wire::Address& address) {
    net::UdpConfig config{.local = wire::Address::any(address.family(), 0),
                          .gso = false,
                          .gro = false,
                          .receive_buffer_bytes = 1 << 20,
                          .send_buffer_bytes = 1 << 20,
                          .receive_arena_bytes = 1 << 17,
                          .send_arena_bytes = 1 << 17,
                          .send_packets = 16};
    auto socket = net::UdpSocket::open(config);
    if (!socket) return tl::unexpected(socket.error());
    return std::unique_ptr<SwitchClient>(new SwitchClient(address, *std::move(socket)));
}

SwitchClient::SwitchClient(const wire::Address& address, std::unique_ptr<net::UdpSocket> socket)
    : address_(address),
      socket_(std::move(socket)),
      first_nonce_((std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()),
      nonce_(first_nonce_) {}

Result<void> SwitchClient::send(std::span<const std::byte> bytes) {
    const std::span<std::byte> room = socket_->reserve(bytes.size());
    if (room.empty()) return fail(Operation::send, Reason::exhausted, to_string(address_), "the send buffer is full");
    std::memcpy(room.data(), bytes.data(), bytes.size());
    socket_->commit(bytes.size(), address_, wire::Ecn::not_capable);
    const net::Flush flushed = socket_->flush();
    if (flushed.refused != 0) return fail_with_errno(Operation::send, flushed.refusal, to_string(address_));
    return {};
}

template <class Accepts>
Result<bool> SwitchClient::await(Time until, Accepts&& accepts) {
    std::array<wire::Datagram, 8> datagrams;
    for (Time at = net::now(); at < until; at = net::now()) {
        pollfd waiting{.fd = socket_->descriptor(), .events = POLLIN, .revents = 0};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - at).count();
        if (::poll(&waiting, 1, static_cast<int>(left)) < 0 && errno != EINTR) {
            return fail_with_errno(Operation::wait, errno, to_string(address_));
        }
        const auto count = socket_->receive(datagrams);
        if (!count) return tl::unexpected(count.error());
        for (std::size_t i = 0; i < *count; ++i) {
            const auto accepted = accepts(datagrams[i]);
            if (!accepted) return tl::unexpected(accepted.error());
            if (*accepted) return true;
        }
    }
    return false;
}

Failure SwitchClient::silent(Operation operation, Time since) const {
    Error error{.operation = operation,
                .reason = Reason::timed_out,
                .peer = to_string(address_),
                .elapsed = net::now() - since,
                .text = "no answer: check that `atp switch` runs there and that firewalls pass UDP"};
    return Failure(std::move(error));
}

// A refusal has no nonce, so only its sender identifies it. False: another sender, or an invalid packet.
Result<bool> SwitchClient::refusal(const wire::Datagram& datagram, std::uint8_t version) const {
    const auto refused = wire::decode_refused(datagram.bytes);
    const bool foreign = version != wire::control_version || (refused && refused->reason == wire::Refusal::version);
    if (*datagram.from != address_ || (!refused && !foreign)) return false;
    return fail(
        Operation::join, foreign ? Reason::version_mismatch : Reason::rejected, to_string(address_),
        refused && !refused->text.empty()
            ? refused->text
            : fmt::format("it speaks version {} of the protocol: run the same version of atp on workers and switches",
                          version & 0xFU));
}

Result<void> SwitchClient::ask(std::uint32_t bytes) {
    std::vector<std::byte> buffer(std::max<std::size_t>(bytes, wire::least_hello_bytes));
    const wire::Hello question{.nonce = ++nonce_};
    return send({buffer.data(), wire::encode(question, buffer, buffer.size())});
}

// The answer to any request of this call is accepted, because a busy switch may answer after the next request was sent.
Result<Greeting> SwitchClient::hello(Time deadline, std::uint32_t bytes, Duration attempt) {
    const Time begin = net::now();
    const std::uint64_t first = nonce_ + 1;
    std::vector<Time> sent;
    Greeting greeting{.welcome = {}, .round_trip = {}, .asked = 0};
    const auto accept = [&](const wire::Datagram& datagram) -> Result<bool> {
        if (const auto version = wire::refusal_version(datagram.bytes)) return refusal(datagram, *version);
        auto welcome = wire::decode_welcome(datagram.bytes);
        if (!welcome || welcome->nonce - first >= sent.size()) return false;
        greeting.asked = static_cast<std::uint32_t>(welcome->nonce - first) + 1;
        greeting.round_trip = net::now() - sent[welcome->nonce - first];
        greeting.welcome = *std::move(welcome);
        return true;
    };
    while (net::now() < deadline) {
        sent.push_back(net::now());
        if (auto passed = ask(bytes); !passed) return tl::unexpected(passed.error());
        const auto answered = await(std::min(deadline, sent.back() + attempt), accept);
        if (!answered) return tl::unexpected(answered.error());
        if (*answered) return greeting;
    }
    return silent(Operation::join, begin);
}

Result<ProbeOutcome> SwitchClient::probe(std::uint32_t bytes, Time deadline, Duration attempt) {
    const Time begin = net::now();
    auto passed = ask(bytes);
    if (!passed && passed.error().reason == Reason::too_large) return ProbeOutcome::too_long;
    const std::uint64_t probed = nonce_;
    std::optional<Error> refused;  // a switch without its parent refuses; the request is repeated
    ProbeOutcome outcome = ProbeOutcome::lost;
    const auto accept = [&](const wire::Datagram& datagram) -> Result<bool> {
        if (const auto version = wire::refusal_version(datagram.bytes)) {
            auto refusal = this->refusal(datagram, *version);
            if (refusal || refusal.error().reason != Reason::rejected) return refusal;
            refused = refusal.error();
            return false;
        }
        const auto welcome = wire::decode_welcome(datagram.bytes);
        if (!welcome || welcome->nonce - first_nonce_ > nonce_ - first_nonce_) return false;
        if (welcome->received_bytes >= bytes) outcome = ProbeOutcome::arrived;
        return outcome == ProbeOutcome::arrived || welcome->nonce > probed;
    };
    for (;;) {
        if (!passed) return tl::unexpected(passed.error());
        const auto answered = await(std::min(deadline, net::now() + attempt), accept);
        if (!answered) return tl::unexpected(answered.error());
        if (*answered) return outcome;
        if (net::now() >= deadline) break;
        passed = ask(0);
    }
    if (refused) return tl::unexpected(*std::move(refused));
    return silent(Operation::join, begin);
}

Result<wire::Report> SwitchClient::part(const wire::Stats& question, Time deadline) {
    const Time begin = net::now();
    std::array<std::byte, 2 * wire::report_part_bytes> buffer{};
    std::optional<wire::Report> report;
    while (net::now() < deadline) {
        const std::size_t size = wire::encode(question, buffer);
        if (auto passed = send({buffer.data(), size}); !passed) return tl::unexpected(passed.error());
        const auto answered =
            await(std::min(deadline, net::now() + ask_again), [&](const wire::Datagram& datagram) -> Result<bool> {
                report = wire::decode_report(datagram.bytes);
                return report && report->nonce == question.nonce && report->part == question.part;
            });
        if (!answered) return tl::unexpected(answered.error());
        if (*answered) return *std::move(report);
    }
    return silent(Operation::receive, begin);
}

Result<std::string> SwitchClient::report(Time deadline) {
    wire::Stats question{.nonce = static_cast<std::uint32_t>(++nonce_), .snapshot = 0, .part = 0};
    std::string text;
    std::uint32_t parts = 1;
    for (std::uint32_t number = 0; number < parts; ++number) {
        question.part = static_cast<std::uint16_t>(number);
        auto part = this->part(question, deadline);
        if (!part) return tl::unexpected(part.error());
        question.snapshot = part->snapshot;
        parts = part->parts;
        text += part->text;
    }
    return text;
}

}  // namespace atp::client
