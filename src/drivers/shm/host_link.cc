// SPDX-License-Identifier: Apache-2.0
#include "shm/host_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "net/clock.h"
#include "net/random.h"
#include "shm/unix_socket.h"

namespace atp::shm {
namespace {

// A rank sends this as soon as it is connected.
struct HostGreeting {
    std::uint64_t mark = 0x4154502d484f5354;  // "ATP-HOST"
    std::uint64_t rank = 0;
    Secret secret{};
};
static_assert(std::is_trivially_copyable_v<HostGreeting>);

// A stranger that connects and says nothing holds up rank 0 this long.
constexpr Duration longest_greeting = std::chrono::milliseconds(200);

constexpr Duration look_interval = std::chrono::milliseconds(100);

// The word that a rank writes into the memory, so that rank 0 sees that both mean the same memory.
std::uint64_t answer_to(const Secret& secret, unsigned rank) { return secret[0] ^ (secret[1] * (rank + 1)); }

// Becomes readable when the process ends. The socket does so too, but not while a child of the process has a copy.
net::Descriptor end_of(const net::Descriptor& socket) {
    const auto process = peer_of(socket);
    if (!process || process->pid == 0) return {};
    return net::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process->pid, 0)));
}

template <class Object>
std::span<const std::byte> bytes_of(const Object& object) {
    return std::as_bytes(std::span(&object, 1));
}

Failure apart(std::string text) {
    return fail(Operation::rendezvous, Reason::unsupported, "shared memory", std::move(text));
}

}  // namespace

Result<HostLink> HostLink::listen() {
    HostLink link;
    link.name_ = fmt::format("atp-{:016x}{:016x}", net::random_bits(), net::random_bits());
    auto listener = listen_at(link.name_);
    if (!listener) return tl::unexpected(listener.error());
    link.listener_ = *std::move(listener);
    return link;
}

Result<HostLink> HostLink::connect(const std::string& name, unsigned rank, const Secret& secret) {
    auto socket = connect_to(name);
    if (!socket) return tl::unexpected(socket.error());
    if (auto sent = send_all(*socket, bytes_of(HostGreeting{.rank = rank, .secret = secret})); !sent) {
        return tl::unexpected(sent.error());
    }
    HostLink link;
    link.peers_.push_back({.rank = 0, .socket = *std::move(socket)});
    return link;
}

Result<HostLink::LinkedRank> HostLink::accept_one(unsigned ranks, const Secret& secret, Time deadline) {
    while (true) {
        auto socket = accept_from(listener_, deadline);
        if (!socket) return tl::unexpected(socket.error());
        const auto process = peer_of(*socket);
        HostGreeting greeting;
        const Time until = std::min(deadline, net::after(net::now(), longest_greeting));
        const auto got = receive_all(*socket, std::as_writable_bytes(std::span(&greeting, 1)), until);
        const bool known =
            got && process && process->user == geteuid() && greeting.mark == HostGreeting{}.mark &&
            greeting.secret == secret && greeting.rank != 0 && greeting.rank < ranks &&
            std::ranges::none_of(peers_, [&](const LinkedRank& peer) { return peer.rank == greeting.rank; });
        if (known) return LinkedRank{.rank = static_cast<unsigned>(greeting.rank), .socket = *std::move(socket)};
    }
}

Result<std::unique_ptr<HostMemory>> HostLink::share(const HostShape& shape, const Secret& secret, Time deadline,
                                                    const std::function<bool()>& hopeless) {
    auto created = SharedMemory::create(shape.bytes());
    if (!created) return tl::unexpected(created.error());
    auto memory = std::make_unique<HostMemory>(*std::move(created), shape, 0);
    memory->answer(answer_to(secret, 0), static_cast<std::uint32_t>(getpid()));
    while (peers_.size() + 1 < shape.ranks) {
        const Time until = std::min(deadline, net::after(net::now(), look_interval));
        auto peer = accept_one(shape.ranks, secret, until);
        if (!peer) {
            if (peer.error().reason != Reason::timed_out || net::now() >= deadline) {
                return tl::unexpected(peer.error());
            }
            if (hopeless()) return apart("another rank of the host does not connect");
            continue;
        }
        if (auto sent = send_descriptor(peer->socket, memory->descriptor()); !sent) {
            return tl::unexpected(sent.error());
        }
        peers_.push_back(*std::move(peer));
    }
    for (const LinkedRank& peer : peers_) {
        std::byte ready{};
        if (auto got = receive_all(peer.socket, std::span(&ready, 1), deadline); !got) {
            return tl::unexpected(got.error());
        }
        if (memory->answer_of(peer.rank) != answer_to(secret, peer.rank)) {
            return apart(fmt::format("rank {} does not see the memory of rank 0", peer.rank));
        }
    }
    listener_ = {};
    return memory;
}

Result<std::unique_ptr<HostMemory>> HostLink::adopt(const HostShape& shape, unsigned rank, const Secret& secret,
                                                    Time deadline) {
    const net::Descriptor& socket = peers_.front().socket;
    const auto process = peer_of(socket);
    if (!process) return tl::unexpected(process.error());
    if (process->user != geteuid()) return apart("rank 0 runs as another user");
    auto descriptor = receive_descriptor(socket, deadline);
    if (!descriptor) return tl::unexpected(descriptor.error());
    auto adopted = SharedMemory::adopt(*std::move(descriptor), shape.bytes());
    if (!adopted) return tl::unexpected(adopted.error());
    auto memory = std::make_unique<HostMemory>(*std::move(adopted), shape, rank);
    if (memory->answer_of(0) != answer_to(secret, 0)) return apart("this is not the memory of rank 0");
    memory->answer(answer_to(secret, rank), static_cast<std::uint32_t>(getpid()));
    const std::byte ready{1};
    if (auto sent = send_all(socket, std::span(&ready, 1)); !sent) return tl::unexpected(sent.error());
    return memory;
}

void HostLink::watch(HostMemory& memory) {
    std::array<int, 2> ends{-1, -1};
    if (peers_.empty() || pipe2(ends.data(), O_CLOEXEC) != 0) return;
    end_ = net::Descriptor(ends[1]);
    thread_ = std::thread([peers = std::move(peers_), end = net::Descriptor(ends[0]), &memory]() mutable {
        run(std::move(peers), std::move(end), memory);
    });
}

void HostLink::stop() {
    end_ = {};
    if (thread_.joinable()) thread_.join();
}

// A socket that can be read is at its end: no process sends anything after the memory was shared.
void HostLink::run(std::vector<LinkedRank> peers, net::Descriptor end, HostMemory& memory) {
    std::vector<pollfd> watched;
    std::vector<net::Descriptor> processes;
    const auto watch = [&](const net::Descriptor& descriptor) {
        watched.push_back({.fd = descriptor.number(), .events = POLLIN, .revents = 0});
    };
    for (const LinkedRank& peer : peers) {
        processes.push_back(end_of(peer.socket));
        watch(peer.socket);
        watch(processes.back());
    }
    watch(end);
    while (true) {
        if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
        if (watched.back().revents != 0) return;
        for (std::size_t i = 0; i + 1 < watched.size(); ++i) {
            if (watched[i].revents == 0) continue;
            watched[i].fd = -1;
            const unsigned rank = peers[i / 2].rank;
            if (memory.presence_of(rank) == Presence::here) memory.set_presence(rank, Presence::ended);
        }
    }
}

}  // namespace atp::shm
