// SPDX-License-Identifier: Apache-2.0
#include "client/switch_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "net/clock.h"
#include "net/random.h"

namespace atp::client {
namespace {

constexpr Duration ask_again = std::chrono::milliseconds(200);
constexpr Duration pause_after_refusal = std::chrono::milliseconds(100);
// A running switch answers at once; a switch that is starting may take this long.
constexpr Duration longest_start = std::chrono::seconds(30);

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
      hellos_({.peer = address, .first_nonce = net::random_bits(), .any_sender = true}),
      stats_nonce_(net::random_bits()) {}

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
        if (closed_) return fail(Operation::wait, Reason::closed, to_string(address_), "stopped");
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
                // errors.md, forms, timed out: `atp doctor --switch` tells a stopped switch from a firewall
                .text = "no answer: check that `atp switch` runs there and that firewalls pass UDP"};
    return Failure(std::move(error));
}

Failure SwitchClient::refusal(const control::HelloAnswer& answer) const {
    return fail(
        Operation::join, answer.is_foreign() ? Reason::version_mismatch : Reason::rejected, to_string(address_),
        answer.refusal && !answer.refusal->text.empty()
            ? answer.refusal->text
            // errors.md, forms, version mismatch: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
            : fmt::format("it speaks version {} of the protocol: run the same version of atp on workers and switches",
                          answer.version & 0xFU));
}

Result<void> SwitchClient::ask(Time now) {
    std::vector<std::byte> buffer(hellos_.next_bytes());
    const auto size = hellos_.poll_transmit(buffer, now);
    return size ? send({buffer.data(), *size}) : Result<void>();
}

// The answer to any request of this call is accepted, because a busy switch may answer after the next request was sent.
Result<Greeting> SwitchClient::hello(Time deadline, std::uint32_t bytes, Duration attempt) {
    using Kind = control::HelloAnswer::Kind;
    const Time begin = net::now();
    hellos_.begin({.first_bytes = bytes, .bytes = bytes, .interval = attempt, .refresh = attempt}, begin);
    Greeting greeting;
    const auto accept = [&](const wire::Datagram& datagram) -> Result<bool> {
        auto answer = hellos_.handle_message(datagram.bytes, *datagram.from, net::now());
        if (!answer) return false;
        if (answer->kind == Kind::refused) return refusal(*answer);
        if (!answer->number) return false;
        greeting = {
            .welcome = std::move(answer->welcome), .round_trip = answer->round_trip, .asked = *answer->number + 1};
        return true;
    };
    for (Time now = begin; now < deadline; now = net::now()) {
        if (auto passed = ask(now); !passed) return tl::unexpected(passed.error());
        const auto answered = await(std::min(deadline, hellos_.poll_timeout()), accept);
        if (!answered) return tl::unexpected(answered.error());
        if (*answered) return greeting;
    }
    return silent(Operation::join, begin);
}

Result<Greeting> SwitchClient::greet(Time deadline) {
    std::optional<Error> refusal;
    while (true) {
        auto greeting = hello(std::min(deadline, net::after(net::now(), longest_start)));
        if (greeting) return greeting;
        // The last reason of the switch helps more than the timeout.
        if (greeting.error().reason == Reason::timed_out && refusal) return tl::unexpected(*std::move(refusal));
        if (greeting.error().reason != Reason::rejected || net::now() + pause_after_refusal > deadline) return greeting;
        refusal = std::move(greeting).error();
        std::this_thread::sleep_for(pause_after_refusal);
    }
}

Result<ProbeOutcome> SwitchClient::probe(std::uint32_t bytes, Time deadline, Duration attempt) {
    using Kind = control::HelloAnswer::Kind;
    const Time begin = net::now();
    hellos_.begin({.first_bytes = bytes, .interval = attempt, .refresh = attempt}, begin);
    auto passed = ask(begin);
    if (!passed && passed.error().reason == Reason::too_large) return ProbeOutcome::too_long;
    std::optional<Error> refused;  // a switch without its parent refuses; the request is repeated
    ProbeOutcome outcome = ProbeOutcome::lost;
    const auto accept = [&](const wire::Datagram& datagram) -> Result<bool> {
        const auto answer = hellos_.handle_message(datagram.bytes, *datagram.from, net::now());
        if (!answer) return false;
        if (answer->kind == Kind::refused) {
            if (answer->is_foreign()) return refusal(*answer);
            refused = refusal(*answer).value();
            return false;
        }
        if (answer->welcome.received_bytes >= bytes) outcome = ProbeOutcome::arrived;
        return outcome == ProbeOutcome::arrived || answer->number.value_or(0) > 0;
    };
    for (;;) {
        if (!passed) return tl::unexpected(passed.error());
        const auto answered = await(std::min(deadline, hellos_.poll_timeout()), accept);
        if (!answered) return tl::unexpected(answered.error());
        if (*answered) return outcome;
        const Time now = net::now();
        if (now >= deadline) break;
        passed = ask(now);
    }
    if (refused) return tl::unexpected(*std::move(refused));
    return silent(Operation::join, begin);
}

Result<wire::Report> SwitchClient::part(wire::Stats question, Time deadline, std::uint32_t bytes, Duration attempt) {
    const Time begin = net::now();
    std::vector<std::byte> buffer(std::max<std::size_t>(bytes, 2 * wire::report_part_bytes));
    std::optional<wire::Report> report;
    const auto accept = [&](const wire::Datagram& datagram) -> Result<bool> {
        const auto retry = wire::decode<wire::Retry>(datagram.bytes);
        if (retry && retry->nonce == question.nonce && retry->cookie != question.cookie) {
            stats_cookie_ = retry->cookie;
            report.reset();
            return true;
        }
        report = wire::decode<wire::Report>(datagram.bytes);
        return report && report->nonce == question.nonce && report->part == question.part;
    };
    while (net::now() < deadline) {
        question.cookie = stats_cookie_;
        const std::size_t size = std::max<std::size_t>(wire::encode(question, buffer), bytes);
        if (auto passed = send({buffer.data(), size}); !passed) return tl::unexpected(passed.error());
        const auto answered = await(std::min(deadline, net::now() + attempt), accept);
        if (!answered) return tl::unexpected(answered.error());
        if (*answered && report) return *std::move(report);
    }
    return silent(Operation::receive, begin);
}

Result<bool> SwitchClient::receives(std::uint32_t bytes, Time deadline, Duration attempt) {
    const auto answer = part({.nonce = ++stats_nonce_, .snapshot = 0, .part = 0}, deadline, bytes, attempt);
    if (answer) return true;
    if (answer.error().reason == Reason::timed_out || answer.error().reason == Reason::too_large) return false;
    return tl::unexpected(answer.error());
}

Result<std::string> SwitchClient::report(Time deadline) {
    wire::Stats question{.nonce = ++stats_nonce_, .snapshot = 0, .part = 0};
    std::string text;
    std::uint32_t parts = 1;
    for (std::uint32_t number = 0; number < parts; ++number) {
        question.part = static_cast<std::uint16_t>(number);
        auto part = this->part(question, deadline, 0, ask_again);
        if (!part) return tl::unexpected(part.error());
        question.snapshot = part->snapshot;
        parts = part->parts;
        text += part->text;
    }
    return text;
}

}  // namespace atp::client
