// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_store_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/clock.h"
#include "net/descriptor.h"
#include "net/udp_options.h"
#include "store/store_service.h"
#include "store/tcp_connection.h"

namespace atp::store {
namespace {

constexpr int accepts_per_round = 64;
// Limit of connections beyond the configured number. Each is kept only until it has its refusal.
constexpr std::size_t most_turned_away = 64;
// Without descriptors or memory, accept4() fails while the listener stays readable. The pause avoids a busy loop.
constexpr Duration pause_without_resources = std::chrono::milliseconds(100);

bool out_of_resources(int code) { return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM; }

// The program that runs the store needs descriptors, too.
std::size_t most_clients(std::size_t configured) {
    rlimit descriptors{};
    if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0 || descriptors.rlim_cur == RLIM_INFINITY) return configured;
    return std::min<std::size_t>(configured, descriptors.rlim_cur - descriptors.rlim_cur / 4);
}

// Clients that one host may have many addresses for count as one.
std::string source_of(const sockaddr_storage& peer) {
    std::string bytes;
    if (peer.ss_family == AF_INET6) {
        constexpr std::size_t network_bytes = 8;
        sockaddr_in6 v6{};
        std::memcpy(&v6, &peer, sizeof v6);
        bytes.assign(reinterpret_cast<const char*>(&v6.sin6_addr), network_bytes);
    } else {
        sockaddr_in v4{};
        std::memcpy(&v4, &peer, sizeof v4);
        bytes.assign(reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr);
    }
    return bytes;
}

// A reserved descriptor. When no other is left, closing it allows one client to be refused with a reason.
net::Descriptor open_spare() { return net::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

Result<net::Descriptor> listen_on(const wire::Address& address) {
    const auto failed = [&address] { return fail_with_errno(Operation::bind, errno, to_string(address)); };
    net::Descriptor descriptor(socket(address.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!descriptor.valid()) return failed();
    const int on = 1;
    // A restarted server can bind its port while earlier connections are in TIME_WAIT.
    if (setsockopt(descriptor.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return failed();
    if (address.family() == wire::Family::ipv6 &&
        setsockopt(descriptor.number(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) {
        return failed();
    }
    if (bind(descriptor.number(), address.data(), address.size()) != 0) return failed();
    if (listen(descriptor.number(), SOMAXCONN) != 0) return failed();
    return descriptor;
}

}  // namespace

// Moves bytes between sockets and the service. The descriptor of a connection is the id of its client.
class TcpStoreServer::Connections : public net::Actor {
  public:
    Connections(net::EventLoop& loop, net::Descriptor listener, const TcpStoreServerConfig& config)
        : loop_(loop), listener_(std::move(listener)), config_(config), service_(config.limits) {
        config_.clients = most_clients(config_.clients);
    }

    [[nodiscard]] Result<void> watch_listener() {
        loop_.add(*this);
        return loop_.watch(*this, listener_.number(), {.read = true, .write = false});
    }

    void handle_ready(int descriptor, net::Ready ready, Time now) override {
        if (descriptor == listener_.number()) return accept_some(now);
        const auto at = connections_.find(descriptor);
        if (at == connections_.end()) return;
        if (ready.write) send_some(at->second);
        if (ready.read || ready.failed) receive_some(at->second);
        settle(at->second, now);
    }
    void handle_timeout(Time now) override;
    void finish_round(Time now) override {
        while (const StoreClient* const client = service_.poll_output()) {
            Connection& connection = connections_.at(client->id());
            send_some(connection);
            settle(connection, now);
        }
    }
    [[nodiscard]] Time poll_timeout() const override { return std::min(next_overdue_, accept_again_); }

    // Call after the loop has ended.
    void close_all() {
        connections_.clear();
        count_clients();
        listener_ = {};
    }
    // Any thread may call it.
    [[nodiscard]] bool wait_deserted(Time deadline);

  private:
    struct Accepted {
        net::Descriptor descriptor;
        std::string source;  // see source_of()
    };
    struct Connection {
        Connection(StoreService& service, Accepted accepted)
            : descriptor(std::move(accepted.descriptor)),
              source(std::move(accepted.source)),
              client(service, descriptor.number()) {}

        net::Descriptor descriptor;
        std::string source;
        StoreClient client;
        Time since{};               // when it was accepted
        Time deadline = never;      // when the client must have sent its message or read its reply
        bool due = false;           // has a message to send or a reply to read
        bool writes = false;        // waits to become writable
        bool reported_all = false;  // the sending direction is shut down
        bool closed = false;        // the peer closed, or the socket failed
    };

    void accept_some(Time now);
    [[nodiscard]] std::optional<StoreRefusal> objection_to(const std::string& source) const;
    void take_in(Accepted accepted, Time now, const std::optional<StoreRefusal>& refusal);
    static void send_some(Connection& connection);
    void receive_some(Connection& connection);
    void settle(Connection& connection, Time now);
    void drop(int id);
    [[nodiscard]] Accepted accept_one() const;
    bool turn_one_away(Time now);
    void count_clients();

    net::EventLoop& loop_;
    net::Descriptor listener_;
    net::Descriptor spare_ = open_spare();
    TcpStoreServerConfig config_;
    StoreService service_;
    std::unordered_map<int, Connection> connections_;
    std::unordered_map<std::string, std::size_t> clients_of_;  // by source
    Time next_overdue_ = never;
    Time accept_again_ = never;
    std::array<char, 32768> received_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t clients_ = 0;  // connections_.size(), for other threads
};

TcpStoreServer::Connections::Accepted TcpStoreServer::Connections::accept_one() const {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    auto* const generic = reinterpret_cast<sockaddr*>(&peer);
    net::Descriptor descriptor(accept4(listener_.number(), generic, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    return {.descriptor = std::move(descriptor), .source = source_of(peer)};
}

std::optional<StoreRefusal> TcpStoreServer::Connections::objection_to(const std::string& source) const {
    const auto refuse = [](std::size_t limit, std::string_view whose) {
        return StoreRefusal{StoreStatus::exhausted,
                            fmt::format("{} clients{} are connected, which is the limit", limit, whose)};
    };
    if (connections_.size() >= config_.clients) return refuse(config_.clients, "");
    const auto known = clients_of_.find(source);
    if (known == clients_of_.end() || known->second < config_.clients_of_an_address) return std::nullopt;
    return refuse(config_.clients_of_an_address, " of one address");
}

void TcpStoreServer::Connections::accept_some(Time now) {
    for (int taken = 0; taken < accepts_per_round; ++taken) {
        Accepted accepted = accept_one();
        if (accepted.descriptor.valid()) {
            const auto objection = objection_to(accepted.source);
            take_in(std::move(accepted), now, objection);
        } else if (out_of_resources(errno)) {
            if (turn_one_away(now)) continue;
            if (loop_.change(listener_.number(), {.read = false, .write = false})) {
                accept_again_ = now + pause_without_resources;
            }
            return;
        } else if (errno == EAGAIN) {
            return;
        }  // else the peer closed the connection before it was accepted
    }
}

// Closes the spare descriptor, accepts one client with it, and refuses this client, which would otherwise wait until
// its deadline and get no reason. There is one spare: the next client is refused after this one has left.
bool TcpStoreServer::Connections::turn_one_away(Time now) {
    if (!spare_.valid()) return false;
    spare_ = {};
    Accepted accepted = accept_one();
    if (!accepted.descriptor.valid()) {
        spare_ = open_spare();
        return false;
    }
    take_in(std::move(accepted), now,
            StoreRefusal{StoreStatus::exhausted,
                         // errors.md, forms, exhausted
                         "the process of the store has no free file descriptor: raise its `ulimit -n`"});
    return true;
}

// A refused client gets the reason and closes the connection first.
void TcpStoreServer::Connections::take_in(Accepted accepted, Time now, const std::optional<StoreRefusal>& refusal) {
    if (connections_.size() >= config_.clients + most_turned_away) return;
    const int id = accepted.descriptor.number();
    if (!loop_.watch(*this, id, {.read = true, .write = false})) return;
    tune_stream(id);
    ++clients_of_[accepted.source];
    Connection& connection = connections_.try_emplace(id, service_, std::move(accepted)).first->second;
    connection.since = now;
    if (refusal) connection.client.turn_away(*refusal);
    count_clients();
    settle(connection, now);
}

void TcpStoreServer::Connections::send_some(Connection& connection) {
    StoreClient& client = connection.client;
    while (!client.output().empty()) {
        const ssize_t sent = send(client.id(), client.output().data(), client.output().size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) {
            connection.closed = errno != EAGAIN;
            return;
        }
        client.sent(static_cast<std::size_t>(sent));
    }
}

// One recv() per call, so that no client delays the others.
void TcpStoreServer::Connections::receive_some(Connection& connection) {
    if (connection.closed) return;
    const ssize_t received = recv(connection.client.id(), received_.data(), received_.size(), 0);
    if (received > 0) {
        connection.client.handle_bytes({received_.data(), static_cast<std::size_t>(received)});
    } else {
        connection.closed = received == 0 || (errno != EAGAIN && errno != EINTR);
    }
}

// Updates the watched events and the deadline of a connection, and closes it if it has ended.
void TcpStoreServer::Connections::settle(Connection& connection, Time now) {
    const StoreClient& client = connection.client;
    if (connection.closed) return drop(client.id());
    const bool has_output = !client.output().empty();
    if (connection.writes != has_output) {
        if (!loop_.change(client.id(), {.read = true, .write = has_output})) return drop(client.id());
        connection.writes = has_output;
    }
    // close() with unread bytes would reset the connection and discard the last reply: the client must close first.
    if (client.finished() && !has_output && !connection.reported_all) {
        shutdown(client.id(), SHUT_WR);
        connection.reported_all = true;
    }
    const bool was_due = std::exchange(connection.due, has_output || client.finished() || client.owes_bytes());
    if (!connection.due) {
        connection.deadline = client.asked() ? never : net::after(connection.since, config_.idle_timeout);
    } else if (!was_due) {
        connection.deadline = now + config_.message_timeout;
    }
    next_overdue_ = std::min(next_overdue_, connection.deadline);
}

void TcpStoreServer::Connections::handle_timeout(Time now) {
    if (accept_again_ <= now && loop_.change(listener_.number(), {.read = true, .write = false})) {
        accept_again_ = never;
    }
    if (next_overdue_ > now) return;
    std::vector<int> overdue;
    next_overdue_ = never;
    for (const auto& [id, connection] : connections_) {
        if (connection.deadline <= now) {
            overdue.push_back(id);
        } else {
            next_overdue_ = std::min(next_overdue_, connection.deadline);
        }
    }
    for (const int id : overdue) drop(id);
}

void TcpStoreServer::Connections::drop(int id) {
    loop_.unwatch(id);
    const auto found = connections_.find(id);
    const auto source = clients_of_.find(found->second.source);
    if (--source->second == 0) clients_of_.erase(source);
    connections_.erase(found);
    if (!spare_.valid()) spare_ = open_spare();
    count_clients();
}

void TcpStoreServer::Connections::count_clients() {
    const std::scoped_lock lock(mutex_);
    clients_ = connections_.size();
    changed_.notify_all();
}

bool TcpStoreServer::Connections::wait_deserted(Time deadline) {
    std::unique_lock lock(mutex_);
    while (clients_ != 0) {
        const Time now = net::now();
        if (now >= deadline) return false;
        changed_.wait_for(lock, std::min<Duration>(deadline - now, net::longest_sleep));
    }
    return true;
}

Result<std::unique_ptr<TcpStoreServer>> TcpStoreServer::start(const wire::Address& listen,
                                                              const TcpStoreServerConfig& config) {
    auto listener = listen_on(listen);
    if (!listener) return Failure(std::move(listener).error());
    const auto local = net::local_address(*listener);
    if (!local) return Failure(local.error());
    auto loop = net::EventLoop::open({});
    if (!loop) return Failure(std::move(loop).error());
    std::unique_ptr<TcpStoreServer> server(new TcpStoreServer);  // its constructor is private
    server->connections_ = std::make_unique<Connections>(**loop, *std::move(listener), config);
    server->loop_ = *std::move(loop);
    server->local_ = *local;
    if (auto watched = server->connections_->watch_listener(); !watched) return Failure(std::move(watched).error());
    try {
        server->thread_ = std::thread(&TcpStoreServer::serve, server.get());
    } catch (const std::system_error& error) {
        return fail(Operation::open, Reason::exhausted, to_string(*local), error.what());
    }
    return server;
}

TcpStoreServer::TcpStoreServer() = default;

void TcpStoreServer::serve() {
    sigset_t all;  // signals belong to the application
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    outcome_ = loop_->run();
    connections_->close_all();  // here, so that no client waits for a failed server
}

Result<void> TcpStoreServer::stop() {
    if (!thread_.joinable()) return {};
    loop_->stop();
    thread_.join();
    return outcome_;
}

bool TcpStoreServer::wait_deserted(Time deadline) const { return connections_->wait_deserted(deadline); }

TcpStoreServer::~TcpStoreServer() { static_cast<void>(stop()); }

}  // namespace atp::store
