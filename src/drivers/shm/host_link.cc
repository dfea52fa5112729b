// SPDX-License-Identifier: Apache-2.0
#include "shm/host_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
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

constexpr Duration look_interval = std::chrono::milliseconds(100);
constexpr Duration pause_of_full_queue = std::chrono::milliseconds(1);

// The word that a rank writes into the memory, so that rank 0 sees that both mean the same memory.
std::uint64_t answer_to(const Secret& secret, unsigned rank) { return secret[0] ^ (secret[1] * (rank + 1)); }

// Becomes readable when the process ends. The socket does so too, but not while a child of the process has a copy.
net::Descriptor end_of(const net::Descriptor& socket) {
    const auto process = peer_of(socket);
    if (!process || process->pid == 0) return {};
    return net::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process->pid, 0)));
}

bool is_own_user(const net::Descriptor& socket) {
    const auto process = peer_of(socket);
    return process && process->user == geteuid();
}

template <class Object>
std::span<const std::byte> bytes_of(const Object& object) {
    return std::as_bytes(std::span(&object, 1));
}

Failure apart(std::string text) {
    return fail(Operation::rendezvous, Reason::unsupported, "shared memory", std::move(text));
}

// Takes connections, and waits for all of their greetings at once: a silent one delays no other.
class Reception {
  public:
    struct Guest {
        net::Descriptor socket;
        HostGreeting greeting{};
        std::size_t got = 0;  // bytes of the greeting
    };

    Reception(const net::Descriptor& listener, const Secret& secret) : listener_(listener), secret_(secret) {}

    // The next one that shows the secret; Reason::timed_out: nobody did, although strangers may go on connecting.
    [[nodiscard]] Result<Guest> next(Time until) {
        do {
            std::vector<pollfd> watched{{.fd = listener_.number(), .events = POLLIN, .revents = 0}};
            for (const Guest& guest : silent_) {
                watched.push_back({.fd = guest.socket.number(), .events = POLLIN, .revents = 0});
            }
            if (auto ready = wait_for_any(watched, until); !ready) return tl::unexpected(ready.error());
            for (std::size_t i = silent_.size(); i-- > 0;) {
                if (watched[i + 1].revents == 0 || may_go_on(silent_[i])) continue;
                Guest guest = std::move(silent_[i]);
                silent_.erase(silent_.begin() + static_cast<std::ptrdiff_t>(i));
                const HostGreeting& shown = guest.greeting;
                if (shown.mark == HostGreeting{}.mark && shown.secret == secret_) return guest;
            }
            if (watched.front().revents == 0) continue;
            if (auto taken = take_one(); !taken) return tl::unexpected(taken.error());
        } while (net::now() < until);
        return fail(Operation::wait, Reason::timed_out, "Unix socket", "no answer");
    }

  private:
    // Ranks greet at once, so the oldest of many is none.
    static constexpr std::size_t most_silent = 256;

    Result<void> take_one() {
        auto socket = accept_from(listener_, net::now());
        if (!socket) return tl::unexpected(socket.error());
        if (!is_own_user(*socket)) return {};
        if (silent_.size() == most_silent) silent_.erase(silent_.begin());
        silent_.push_back({.socket = *std::move(socket)});
        return {};
    }
    // False: the greeting is complete, or will never be.
    static bool may_go_on(Guest& guest) {
        const auto rest = std::as_writable_bytes(std::span(&guest.greeting, 1)).subspan(guest.got);
        const ssize_t got = recv(guest.socket.number(), rest.data(), rest.size(), 0);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        guest.got += static_cast<std::size_t>(got);
        return got != 0 && guest.got < sizeof guest.greeting;
    }

    const net::Descriptor& listener_;
    const Secret& secret_;
    std::vector<Guest> silent_;
};

}  // namespace

Result<HostLink> HostLink::listen() {
    HostLink link;
    link.name_ = fmt::format("atp-{:016x}{:016x}", net::random_bits(), net::random_bits());
    auto listener = listen_at(link.name_);
    if (!listener) return tl::unexpected(listener.error());
    link.listener_ = *std::move(listener);
    return link;
}

Result<HostLink> HostLink::connect(const std::string& name, unsigned rank, const Secret& secret, Time deadline) {
    auto socket = connect_to(name);
    while (!socket && socket.error().code == EAGAIN && net::now() < deadline) {
        std::this_thread::sleep_for(pause_of_full_queue);
        socket = connect_to(name);
    }
    if (!socket) return tl::unexpected(socket.error());
    if (!is_own_user(*socket)) return apart("the socket of rank 0 belongs to another user");
    if (auto sent = send_all(*socket, bytes_of(HostGreeting{.rank = rank, .secret = secret})); !sent) {
        return tl::unexpected(sent.error());
    }
    HostLink link;
    link.peers_.push_back({.rank = 0, .socket = *std::move(socket)});
    return link;
}

bool HostLink::has_peer(std::uint64_t rank) const {
    return std::ranges::any_of(peers_, [rank](const LinkedRank& peer) { return peer.rank == rank; });
}

Result<std::unique_ptr<HostMemory>> HostLink::share(const HostShape& shape, const Secret& secret, Time deadline,
                                                    const std::function<bool()>& hopeless) {
    auto created = SharedMemory::create(shape.bytes());
    if (!created) return tl::unexpected(created.error());
    auto memory = std::make_unique<HostMemory>(*std::move(created), shape, 0);
    memory->answer(answer_to(secret, 0), static_cast<std::uint32_t>(getpid()));
    Reception reception(listener_, secret);
    while (peers_.size() + 1 < shape.ranks) {
        const Time until = std::min(deadline, net::after(net::now(), look_interval));
        auto guest = reception.next(until);
        if (!guest) {
            if (guest.error().reason != Reason::timed_out || net::now() >= deadline) {
                return tl::unexpected(guest.error());
            }
            if (hopeless()) return apart("another rank of the host does not connect");
            continue;
        }
        const std::uint64_t rank = guest->greeting.rank;
        if (rank == 0 || rank >= shape.ranks || has_peer(rank)) continue;
        if (auto sent = send_descriptor(guest->socket, memory->descriptor()); !sent) {
            return tl::unexpected(sent.error());
        }
        peers_.push_back({.rank = static_cast<unsigned>(rank), .socket = std::move(guest->socket)});
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
