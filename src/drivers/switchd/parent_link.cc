// SPDX-License-Identifier: Apache-2.0
#include "switchd/parent_link.h"

#include <array>
#include <random>

namespace atp::switchd {
namespace {

constexpr Duration impatient = std::chrono::milliseconds(50);
constexpr Duration refresh = std::chrono::seconds(1);
constexpr Duration hold = std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<ParentLink>> ParentLink::open(const wire::Address& parent, net::EventLoop& loop) {
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
    std::unique_ptr<ParentLink> link(new ParentLink(parent, loop, *std::move(socket)));
    loop.add(*link);
    if (auto watched = loop.watch(*link, link->socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    return link;
}

ParentLink::ParentLink(const wire::Address& parent, net::EventLoop& loop, std::unique_ptr<net::UdpSocket> socket)
    : parent_(parent),
      loop_(loop),
      socket_(std::move(socket)),
      nonce_((std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()) {}

ParentLink::~ParentLink() { loop_.remove(*this); }

void ParentLink::handle_ready(int, net::Ready, Time now) {
    std::array<wire::Datagram, 8> datagrams;
    const auto count = socket_->receive(datagrams);
    if (!count) return;
    for (std::size_t i = 0; i < *count; ++i) {
        const auto welcome = wire::decode_welcome(datagrams[i].bytes);
        if (!welcome || welcome->nonce != nonce_ || *datagrams[i].from != parent_) continue;
        path_ = welcome->path;
        answers_ = true;
        answered_at_ = now;
    }
}

void ParentLink::handle_timeout(Time now) {
    if (now < next_) return;
    if (now - answered_at_ > hold) {
        path_.clear();
        answers_ = false;
    }
    next_ = now + (answers() ? refresh : impatient);
    const std::span<std::byte> room = socket_->reserve(wire::least_hello_bytes);
    if (room.empty()) return;
    socket_->commit(wire::encode(wire::Hello{.nonce = nonce_}, room, wire::least_hello_bytes), parent_,
                    wire::Ecn::not_capable);
    static_cast<void>(socket_->flush());
}

}  // namespace atp::switchd
