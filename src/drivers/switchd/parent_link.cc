// SPDX-License-Identifier: Apache-2.0
#include "switchd/parent_link.h"

#include <array>
#include <cstring>
#include <utility>

#include "net/random.h"

namespace atp::switchd {

Result<std::unique_ptr<ParentLink>> ParentLink::open(const wire::Address& parent, net::EventLoop& loop,
                                                     observe::Log* log, std::shared_ptr<control::QuestionPace> pace) {
    net::UdpConfig config{.local = wire::Address::any(parent.family(), 0),
                          .gso = false,
                          .gro = false,
                          .receive_buffer_bytes = 1 << 16,
                          .send_buffer_bytes = 1 << 16,
                          .receive_arena_bytes = 1 << 16,
                          .send_arena_bytes = 1 << 16,
                          .send_packets = 16};
    auto socket = net::UdpSocket::open(config);
    if (!socket) return tl::unexpected(socket.error());
    std::unique_ptr<ParentLink> link(new ParentLink(parent, loop, log, *std::move(socket), std::move(pace)));
    loop.add(*link);
    if (auto watched = loop.watch(*link, link->socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    return link;
}

ParentLink::ParentLink(const wire::Address& parent, net::EventLoop& loop, observe::Log* log,
                       std::unique_ptr<net::UdpSocket> socket, std::shared_ptr<control::QuestionPace> pace)
    : loop_(loop),
      log_(log),
      socket_(std::move(socket)),
      client_({.peer = parent, .first_nonce = net::random_bits()}),
      pace_(std::move(pace)) {
    client_.begin({.interval = control::timing.hurry, .refresh = control::timing.refresh}, Time{});
}

ParentLink::~ParentLink() { loop_.remove(*this); }

void ParentLink::handle_ready(int, net::Ready, Time now) {
    std::array<wire::Datagram, 8> datagrams;
    const auto count = socket_->receive(datagrams);
    if (!count) return;
    for (std::size_t i = 0; i < *count; ++i) {
        const auto answer = client_.handle_message(datagrams[i].bytes, *datagrams[i].from, now);
        if (answer && answer->kind == control::HelloAnswer::Kind::welcome) pace_->handle_answer(client_.peer(), now);
    }
    update();
}

void ParentLink::update() {
    const bool answers = client_.answers();
    if (answers_.exchange(answers) == answers || log_ == nullptr) return;
    if (answers) {
        log_->write(observe::LogEvent::parent_ready, {{"address", client_.peer()}});
    } else {
        log_->write(observe::LogEvent::parent_lost, {{"address", client_.peer()}, {"reason", "silence"}});
    }
}

void ParentLink::handle_timeout(Time now) {
    if (now < client_.poll_timeout()) return;
    client_.handle_timeout(now);
    update();
    std::array<std::byte, wire::least_question_bytes> hello{};
    const auto size = client_.poll_transmit(hello, now);
    const std::span<std::byte> room = socket_->reserve(hello.size());
    if (!size || room.empty()) return;
    std::memcpy(room.data(), hello.data(), *size);
    socket_->commit(*size, client_.peer(), wire::Ecn::not_capable);
    static_cast<void>(socket_->flush());
}

}  // namespace atp::switchd
