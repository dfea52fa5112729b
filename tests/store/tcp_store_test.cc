// SPDX-License-Identifier: Apache-2.0
// Properties of the store for processes only: sockets, strangers, and connections that open and close.
#include "store/tcp_store.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <random>
#include <thread>

#include "net/descriptor.h"
#include "net/udp_options.h"
#include "own_network.h"
#include "store_fixture.h"

namespace atp::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::connect;
using test::error_of;
using test::failed_with;
using test::longest_wait;
using test::says;
using test::serve;
using test::shortly;
using wire::Address;
using wire::Family;

using Keys = std::vector<std::string>;

const Address any_port = Address::loopback(Family::ipv4, 0);

std::string hello() {
    return encode(StoreRequest{.kind = Kind::hello, .number = hello_number, .keys = {}, .value = {}});
}

// A blocking socket that sends what the test supplies, with a timeout of 60 s.
class Stranger {
  public:
    explicit Stranger(net::Descriptor descriptor) : descriptor_(std::move(descriptor)) {
        const timeval minute{.tv_sec = 60, .tv_usec = 0};
        setsockopt(descriptor_.number(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute);
        setsockopt(descriptor_.number(), SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute);
    }
    explicit Stranger(const Address& server) : Stranger(net::Descriptor(socket(AF_INET, SOCK_STREAM, 0))) {
        EXPECT_EQ(::connect(descriptor_.number(), server.data(), server.size()), 0);
    }

    // False if the other end has closed.
    bool write(std::string_view bytes) {
        return send(descriptor_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
    }
    [[nodiscard]] bool has_input() const {
        pollfd watched{.fd = descriptor_.number(), .events = POLLIN, .revents = 0};
        return poll(&watched, 1, 0) > 0;
    }
    std::string read() {
        std::array<char, 4096> bytes;
        const ssize_t count = recv(descriptor_.number(), bytes.data(), bytes.size(), 0);
        return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : std::string();
    }
    // True if the other end closed in good order. A reset could discard data that it sent before.
    [[nodiscard]] bool at_end() const {
        char byte = 0;
        return recv(descriptor_.number(), &byte, 1, 0) == 0;
    }
    // nullopt: the end of the stream.
    std::optional<Reply> reply() {
        for (;;) {
            if (const auto message = reader_.next(); message && message->has_value()) return *decode_reply(**message);
            const std::string input = read();
            if (input.empty()) return std::nullopt;
            reader_.append(input);
        }
    }

  private:
    net::Descriptor descriptor_;
    MessageReader reader_;
};

// A port of loopback that the test reserves. The port is open only after listen().
class Port {
  public:
    explicit Port(Family family = Family::ipv4)
        : descriptor_(socket(family == Family::ipv4 ? AF_INET : AF_INET6, SOCK_STREAM, 0)) {
        const int on = 1;
        setsockopt(descriptor_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        const Address any_port = Address::loopback(family, 0);
        EXPECT_EQ(bind(descriptor_.number(), any_port.data(), any_port.size()), 0);
        address_ = net::local_address(descriptor_).value();
    }
    [[nodiscard]] const Address& address() const { return address_; }
    void listen() { ASSERT_EQ(::listen(descriptor_.number(), 16), 0); }
    Stranger accept() { return Stranger(net::Descriptor(::accept(descriptor_.number(), nullptr, nullptr))); }

  private:
    net::Descriptor descriptor_;
    Address address_;
};

TEST(TcpStore, ConnectSucceedsWhenTheServerStartsLater) {
    const Port port;
    Result<std::unique_ptr<TcpStore>> early;
    std::thread rank([&] { early = TcpStore::connect(port.address(), longest_wait()); });
    // by now the client has met the closed port, or will meet it at once
    std::this_thread::sleep_for(milliseconds(50));
    const auto server = serve(port.address());
    rank.join();
    ASSERT_TRUE(early) << error_of(early);
    EXPECT_TRUE((*early)->set("key", "value"));
}

TEST(TcpStore, ClosedPortIsRefusedWithAQuestionForRankZero) {
    const Port port;
    const auto store = TcpStore::connect(port.address(), shortly());
    ASSERT_TRUE(failed_with(store, Reason::refused)) << error_of(store);
    EXPECT_EQ(store.error().operation, Operation::connect);
    EXPECT_EQ(store.error().peer, to_string(port.address()));
    EXPECT_GE(store.error().elapsed, milliseconds(20));
    EXPECT_EQ(store.error().text, "check that rank 0 runs and serves the store");
}

// In this network a client can use only the port to which it connects, so the kernel connects the client to itself. In
// other networks this happens by chance.
std::string look_for_a_store_at_the_only_port() {
    constexpr std::uint16_t port = 40000;
    std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << port << ' ' << port << std::flush;
    const Address itself = Address::loopback(Family::ipv4, port);
    const net::Descriptor probe(socket(AF_INET, SOCK_STREAM, 0));
    const bool possible = ::connect(probe.number(), itself.data(), itself.size()) == 0;
    if (!possible) return test::not_possible_here;
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(probe.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return {};
}

TEST(TcpStore, ConnectionToItselfIsRefused) {
    const auto wrong = test::run_in_own_network(65536, [] {
        if (std::string why = look_for_a_store_at_the_only_port(); !why.empty()) return why;
        const Address itself = Address::loopback(Family::ipv4, 40000);
        const auto store = TcpStore::connect(itself, shortly());
        if (!failed_with(store, Reason::refused)) return "it found: " + error_of(store);
        const auto server = TcpStoreServer::start(itself);
        return server ? std::string() : "the port is not free: " + error_of(server);
    });
    if (!wrong || *wrong == test::not_possible_here) GTEST_SKIP() << "no network of its own, or no such port range";
    EXPECT_EQ(*wrong, "");
}

TEST(TcpStore, SilentServerTimesOut) {
    Port port;
    port.listen();
    const auto store = TcpStore::connect(port.address(), shortly());
    ASSERT_TRUE(failed_with(store, Reason::timed_out)) << error_of(store);
    EXPECT_EQ(store.error().text, "the store does not answer: check that rank 0 runs");
}

TEST(TcpStore, ServerOfAnotherKindOrVersionFailsAtOnce) {
    const std::vector<std::pair<std::string, Reason>> greetings{
        {"HTTP/1.1 400 Bad StoreRequest\r\n\r\n", Reason::malformed},
        {std::string("\0\0\0\1\2", 5), Reason::version_mismatch},
        {encode(Reply{.status = StoreStatus::version_mismatch, .number = 0, .fields = {"speak up"}}),
         Reason::version_mismatch},
    };
    for (const auto& [greeting, reason] : greetings) {
        Port port;
        port.listen();
        std::thread other([&] {
            Stranger client = port.accept();
            client.write(greeting);
            client.read();  // its hello; then it leaves
            client.read();
        });
        const auto store = TcpStore::connect(port.address(), longest_wait());
        other.join();
        EXPECT_TRUE(failed_with(store, reason)) << error_of(store);
    }
}

TEST(TcpStore, ServerThatFallsSilentEndsTheWaitAndClosesTheStore) {
    Port port;
    port.listen();
    std::thread other([&] {
        Stranger client = port.accept();
        client.read();
        client.write(encode(Reply{}));
        while (!client.read().empty()) continue;
    });
    auto store = TcpStore::connect(port.address(), longest_wait(),
                                   {.answer_timeout = seconds(60), .last_word_timeout = milliseconds(20)});
    ASSERT_TRUE(store) << error_of(store);
    const auto got = (*store)->get("key", shortly());
    ASSERT_TRUE(failed_with(got, Reason::timed_out)) << error_of(got);
    EXPECT_TRUE(says(got.error().text, "'key'")) << got.error().text;
    const auto later = (*store)->set("key", "value");
    ASSERT_TRUE(failed_with(later, Reason::closed)) << error_of(later);
    EXPECT_TRUE(says(later.error().text, "does not answer")) << later.error().text;
    store->reset();
    other.join();
}

TEST(TcpStore, SetWithoutAnAnswerTimesOut) {
    Port port;
    port.listen();
    std::thread other([&] {
        Stranger client = port.accept();
        client.read();
        client.write(encode(Reply{}));
        while (!client.read().empty()) continue;
    });
    auto store = TcpStore::connect(port.address(), longest_wait(), {.answer_timeout = milliseconds(30)});
    ASSERT_TRUE(store) << error_of(store);
    EXPECT_TRUE(failed_with((*store)->set("key", "value"), Reason::timed_out));
    store->reset();
    other.join();
}

TEST(TcpStore, ServerThatStopsDuringAWaitClosesTheStore) {
    const auto server = serve();
    const auto waiter = connect(server->local());
    const auto witness = connect(server->local());
    Result<std::string> got;
    std::thread other([&] {
        EXPECT_TRUE(waiter->set("begun", ""));
        got = waiter->get("key", longest_wait());
    });
    EXPECT_TRUE(witness->get("begun", longest_wait()));
    EXPECT_TRUE(server->stop());
    other.join();
    ASSERT_TRUE(failed_with(got, Reason::closed)) << error_of(got);
    EXPECT_EQ(got.error().operation, Operation::rendezvous);
    EXPECT_EQ(got.error().peer, to_string(server->local()));
    EXPECT_TRUE(says(got.error().text, "check that rank 0 still runs")) << got.error().text;
    EXPECT_TRUE(failed_with(waiter->set("key", ""), Reason::closed));
    EXPECT_TRUE(failed_with(witness->set("key", ""), Reason::closed));
    EXPECT_TRUE(server->stop()) << "a second time";
}

TEST(TcpStore, RestartedServerTakesItsPortWithoutOldKeys) {
    auto server = serve();
    const Address address = server->local();
    const auto before = connect(address);
    ASSERT_TRUE(before->set("key", "value"));
    server.reset();
    server = serve(address);
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(failed_with(before->get("key", longest_wait()), Reason::closed));
    const auto after = connect(address);
    EXPECT_EQ(after->missing(Keys{"key"}), Keys{"key"});
}

TEST(TcpStore, SecondServerOnOnePortIsRefused) {
    const auto server = serve();
    const auto second = TcpStoreServer::start(server->local());
    ASSERT_TRUE(failed_with(second, Reason::in_use)) << error_of(second);
    EXPECT_EQ(second.error().operation, Operation::bind);
    EXPECT_EQ(second.error().peer, to_string(server->local()));
}

TEST(TcpStore, Ipv6ServerServesItsClients) {
    auto server = TcpStoreServer::start(Address::loopback(Family::ipv6, 0));
    if (failed_with(server, Reason::unreachable) || failed_with(server, Reason::unsupported)) {
        GTEST_SKIP() << "no IPv6 here: " << error_of(server);
    }
    ASSERT_TRUE(server) << error_of(server);
    EXPECT_EQ((*server)->local().family(), Family::ipv6);
    const auto first = connect((*server)->local());
    const auto second = connect((*server)->local());
    ASSERT_TRUE(first->set("key", "value"));
    EXPECT_EQ(second->get("key", longest_wait()), "value");
}

TEST(TcpStoreServer, GarbageIsAnsweredAndItsConnectionClosed) {
    const auto server = serve();
    const auto client = connect(server->local());
    for (const std::string& garbage :
         {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string("SSH-2.0-OpenSSH_9.2\r\n"),
          std::string(100'000, '\xFF'), std::string("\0\0\0\0", 4), std::string("\0\0\0\1\1", 5)}) {
        Stranger stranger(server->local());
        stranger.write(garbage);
        const auto reply = stranger.reply();
        ASSERT_TRUE(reply);
        EXPECT_NE(reply->status, StoreStatus::done);
        ASSERT_EQ(reply->fields.size(), 1U);
        EXPECT_FALSE(reply->fields.front().empty()) << "the reason";
        EXPECT_TRUE(stranger.at_end());
    }
    EXPECT_TRUE(client->set("key", "value"));
}

TEST(TcpStoreServer, RandomBytesLeaveOtherClientsServed) {
    const auto server = serve();
    const auto client = connect(server->local());
    std::mt19937 random(20261121);
    for (int i = 0; i < 200; ++i) {
        std::string bytes(random() % 300, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        if (random() % 2 == 0 && bytes.size() > 4) bytes.replace(0, 3, 3, '\0');  // a length within the limit
        Stranger stranger(server->local());
        if (random() % 2 == 0) stranger.write(hello());
        stranger.write(bytes);
        ASSERT_TRUE(client->add("counter", 1));
    }
    EXPECT_EQ(client->get("counter", longest_wait()), "200");
}

TEST(TcpStoreServer, TooLargeMessageIsAnsweredAndItsConnectionClosed) {
    const auto server = serve();
    const std::vector<std::string> oversize{
        std::string("\x40\0\0\0", 4),
        encode(
            StoreRequest{.kind = Kind::get, .number = 0, .keys = {std::string(max_key_bytes + 1, 'k')}, .value = {}}),
        encode(StoreRequest{
            .kind = Kind::set, .number = 0, .keys = {"k"}, .value = std::string(max_value_bytes + 1, 'v')}),
    };
    for (const std::string& message : oversize) {
        Stranger stranger(server->local());
        stranger.write(hello());
        EXPECT_EQ(stranger.reply(), Reply{});
        stranger.write(message);
        const auto reply = stranger.reply();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->status, StoreStatus::too_large);
        EXPECT_TRUE(stranger.at_end());
    }
}

TEST(TcpStoreServer, UnfinishedMessageTimesOut) {
    const auto server = serve({.limits = {}, .clients = 10, .message_timeout = milliseconds(50)});
    const auto patient = connect(server->local());
    Result<std::string> got;
    std::thread other([&] { got = patient->get("key", longest_wait()); });
    Stranger silent(server->local());
    Stranger halfway(server->local());
    halfway.write(hello());
    EXPECT_EQ(halfway.reply(), Reply{});
    halfway.write(std::string(1, '\0'));
    EXPECT_FALSE(silent.reply());
    EXPECT_FALSE(halfway.reply());
    const auto client = connect(server->local());
    ASSERT_TRUE(client->set("key", "value"));
    other.join();
    EXPECT_EQ(got, "value") << "who waits for a key may take its time: " << error_of(got);
}

TEST(TcpStoreServer, SlowClientDelaysNoOther) {
    const auto server = serve();
    const auto client = connect(server->local());
    const std::string value(max_value_bytes, 'v');
    ASSERT_TRUE(client->set("large", value));
    const std::string get = encode(StoreRequest{.kind = Kind::get, .number = 0, .keys = {"large"}, .value = {}});
    std::vector<std::unique_ptr<Stranger>> slow;
    for (int i = 0; i < 20; ++i) {
        slow.push_back(std::make_unique<Stranger>(server->local()));
        slow.back()->write(hello());
        EXPECT_EQ(slow.back()->reply(), Reply{});
        slow.back()->write(i % 2 == 0 ? get : get.substr(0, 7));  // unread answers, half-sent requests
    }
    EXPECT_EQ(client->get("large", longest_wait()), value);
    const auto reply = slow.front()->reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->fields, Keys{value}) << "slow is not lost";
}

TEST(TcpStoreServer, ClientBeyondTheLimitIsRefusedUntilAnotherLeaves) {
    const auto server = serve({.limits = {}, .clients = 2, .message_timeout = seconds(60)});
    auto first = connect(server->local());
    const auto second = connect(server->local());
    const auto third = TcpStore::connect(server->local(), shortly());
    ASSERT_TRUE(failed_with(third, Reason::exhausted)) << error_of(third);
    EXPECT_EQ(third.error().text, "2 clients are connected, which is the limit");
    first.reset();
    EXPECT_TRUE(connect(server->local()));
}

TEST(TcpStoreServer, ClientThatAsksForNoKeyTimesOut) {
    const auto server = serve({.limits = {}, .clients = 10, .idle_timeout = milliseconds(50)});
    Stranger idle(server->local());
    idle.write(hello());
    EXPECT_EQ(idle.reply(), Reply{});
    EXPECT_FALSE(idle.reply());
    EXPECT_TRUE(server->wait_deserted(longest_wait()));
}

TEST(TcpStoreServer, ClientsOfOneAddressLeaveRoomForOthers) {
    const auto server = serve({.limits = {}, .clients = 10, .clients_of_an_address = 2});
    const Address other_host = Address::parse("127.0.0.2:0").value();
    std::vector<std::unique_ptr<Stranger>> many;
    for (int i = 0; i < 3; ++i) {
        net::Descriptor from(socket(AF_INET, SOCK_STREAM, 0));
        ASSERT_EQ(bind(from.number(), other_host.data(), other_host.size()), 0);
        ASSERT_EQ(::connect(from.number(), server->local().data(), server->local().size()), 0);
        many.push_back(std::make_unique<Stranger>(std::move(from)));
        many.back()->write(hello());
        const auto reply = many.back()->reply();
        ASSERT_TRUE(reply);
        const Reply refused{.status = StoreStatus::exhausted,
                            .fields = {"2 clients of one address are connected, which is the limit"}};
        EXPECT_EQ(*reply, i < 2 ? Reply{} : refused);
    }
    const auto client = connect(server->local());
    EXPECT_TRUE(client->set("key", "value"));
}

TEST(TcpStoreServer, ClientsLeaveAQuarterOfTheDescriptorsOfTheProcess) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit tight{.rlim_cur = 80, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    const auto server = serve();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    std::vector<std::unique_ptr<Stranger>> many;
    for (int i = 0; i < 61; ++i) {
        many.push_back(std::make_unique<Stranger>(server->local()));
        many.back()->write(hello());
        const auto reply = many.back()->reply();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->status, i < 60 ? StoreStatus::done : StoreStatus::exhausted);
    }
}

TEST(TcpStoreServer, WithoutDescriptorsClientsAreRefusedInTurn) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer opens pipes to look at memory, and takes a pipe that fails for memory that is bad";
#endif
    const auto server = serve();
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int last = dup(0);  // number of the next connection, and the last one available
    ASSERT_EQ(close(last), 0);
    const rlimit tight{.rlim_cur = static_cast<rlim_t>(last) + 1, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    for (int round = 0; round < 2; ++round) {
        Stranger client(server->local());
        client.write(hello());
        const auto reply = client.reply();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->status, StoreStatus::exhausted);
        EXPECT_NE(reply->fields.at(0).find("ulimit -n"), std::string::npos) << reply->fields.at(0);
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(connect(server->local()));
}

TEST(TcpStoreServer, WaitDesertedReturnsAfterTheLastClientLeft) {
    const auto server = serve();
    EXPECT_TRUE(server->wait_deserted(net::now()));
    auto first = connect(server->local());
    auto second = connect(server->local());
    EXPECT_FALSE(server->wait_deserted(net::now() + milliseconds(20)));
    first.reset();
    EXPECT_FALSE(server->wait_deserted(net::now() + milliseconds(20)));
    std::jthread leaving([&] { second.reset(); });
    EXPECT_TRUE(server->wait_deserted(longest_wait()));
}

TEST(TcpStoreServer, StopEndsAnyNumberOfWaits) {
    auto server = serve();
    constexpr std::size_t clients = 64;
    std::vector<std::unique_ptr<TcpStore>> stores;
    for (std::size_t i = 0; i < clients; ++i) stores.push_back(connect(server->local()));
    std::vector<Result<std::string>> got(clients);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients; ++i) {
        threads.emplace_back([&, i] {
            EXPECT_TRUE(stores[i]->add("begun", 1));
            got[i] = stores[i]->get("key", longest_wait());
        });
    }
    const auto witness = connect(server->local());
    while (witness->get("begun", longest_wait()) != std::to_string(clients)) std::this_thread::yield();
    server.reset();
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : got) EXPECT_TRUE(failed_with(one, Reason::closed)) << error_of(one);
}

}  // namespace
}  // namespace atp::store
