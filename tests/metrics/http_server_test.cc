// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "metrics/http_client.h"

namespace atp::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

wire::Address anywhere() { return wire::Address::loopback(wire::Family::ipv4, 0); }

// What the server sends until it closes the connection.
std::string answer_to(const HttpServer& server, const std::string& request) {
    const net::Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    if (connect(socket.number(), server.address().data(), server.address().size()) != 0) return "no connection";
    EXPECT_EQ(send(socket.number(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char part[4096];
    while (true) {
        const ssize_t size = recv(socket.number(), part, sizeof part, 0);
        if (size <= 0) return answer;
        answer.append(part, static_cast<std::size_t>(size));
    }
}

std::string closing(const std::string& first_line) {
    return first_line + "\r\nHost: localhost\r\nAccept: text/x\r\nAuthorization: Bearer 1\r\nConnection: close\r\n\r\n";
}

HttpAnswer echo(const HttpRequest& request) {
    return {.status = request.path == "/lost" ? 404 : 200,
            .type = "text/x",
            .body = "<" + std::string(request.path) + "|" + std::string(request.accept) + "|" +
                    std::string(request.authorization) + ">",
            .headers = {{"X-More", "yes"}}};
}

TEST(HttpServer, HandlerAnswersAPath) {
    const auto server = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(server);
    const std::string answer = answer_to(**server, closing("GET /a/b?c=d HTTP/1.1"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/x\r\n"));
    EXPECT_THAT(answer, HasSubstr("X-More: yes\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\n</a/b|text/x|Bearer 1>"));
    EXPECT_THAT(answer_to(**server, closing("GET /lost HTTP/1.1")), StartsWith("HTTP/1.1 404"));
}

std::string new_path(const char* name) { return testing::TempDir() + name + std::to_string(getpid()); }

TEST(HttpServer, LocalSocketIsForItsUserAndGoesWithTheServer) {
    const std::string path = new_path("local");
    {
        const auto server = HttpServer::start_at(path, echo);
        ASSERT_TRUE(server);
        struct stat status {};
        ASSERT_EQ(lstat(path.c_str(), &status), 0);
        EXPECT_TRUE(S_ISSOCK(status.st_mode));
        EXPECT_EQ(status.st_mode & 0777U, 0600U);
        const auto reply = call({.target = path, .method = "POST", .path = "/x", .timeout = std::chrono::seconds(5)});
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->body, "</x||>");
    }
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(HttpServer, OnlyASocketThatWasLeftBehindIsReplaced) {
    const std::string path = new_path("left");
    const auto first = HttpServer::start_at(path, echo);
    ASSERT_TRUE(first);
    const auto second = HttpServer::start_at(path, echo);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().reason, Reason::in_use);

    const std::string left = new_path("ended");
    {
        const net::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        left.copy(address.sun_path, sizeof address.sun_path - 1);
        ASSERT_EQ(bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    EXPECT_TRUE(HttpServer::start_at(left, echo));

    const std::string file = new_path("file");
    std::ofstream(file) << "kept";
    EXPECT_FALSE(HttpServer::start_at(file, echo));
    EXPECT_EQ(access(file.c_str(), F_OK), 0);
    unlink(file.c_str());
}

TEST(HttpClient, WaitsForASilentServerNoLongerThanItsTimeout) {
    const std::string path = testing::TempDir() + "/atp-silent-" + std::to_string(getpid());
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    const net::Descriptor silent(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(silent.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(silent.number(), 0), 0);
    const HttpCall question{.target = path, .method = "GET", .path = "/", .timeout = std::chrono::milliseconds(20)};
    // Nobody accepts: the first question waits for an answer, and the next one to be connected, since the queue is
    // full.
    for (const Operation operation : {Operation::receive, Operation::connect}) {
        const auto reply = call(question);
        ASSERT_FALSE(reply);
        EXPECT_EQ(reply.error().operation, operation);
        EXPECT_EQ(reply.error().code, ETIMEDOUT);
    }
    unlink(path.c_str());
}

TEST(HttpServer, ExceptionOfTheHandlerIsAnAnswer) {
    const auto server = HttpServer::start(anywhere(), [](const HttpRequest&) -> HttpAnswer { throw std::bad_alloc(); });
    ASSERT_TRUE(server);
    EXPECT_THAT(answer_to(**server, closing("GET / HTTP/1.1")), StartsWith("HTTP/1.1 500"));
}

TEST(HttpServer, HeadHasNoBodyAndOtherMethodsAreRefused) {
    const auto server = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(server);
    const std::string head = answer_to(**server, closing("HEAD / HTTP/1.1"));
    EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(head, Not(HasSubstr("<")));
    EXPECT_THAT(answer_to(**server, closing("PUT / HTTP/1.1")), StartsWith("HTTP/1.1 501"));
}

TEST(HttpServer, WhatIsNoRequestDisturbsNoOther) {
    const auto server = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(server);
    const net::Descriptor silent(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(silent.number(), (*server)->address().data(), (*server)->address().size()), 0);
    EXPECT_THAT(answer_to(**server, "\x01\x02 nonsense\r\n\r\n"), Not(HasSubstr("200")));
    EXPECT_THAT(answer_to(**server, closing("GET /" + std::string(20'000, 'x') + " HTTP/1.1")), Not(HasSubstr("200")));
    EXPECT_THAT(answer_to(**server, closing("GET / HTTP/1.1")), StartsWith("HTTP/1.1 200"));
}

net::Descriptor connection_to(const HttpServer& server, const std::string& beginning) {
    net::Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    const timeval longest{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    EXPECT_EQ(connect(socket.number(), server.address().data(), server.address().size()), 0);
    EXPECT_EQ(send(socket.number(), beginning.data(), beginning.size(), MSG_NOSIGNAL), std::ssize(beginning));
    return socket;
}

TEST(HttpServer, ClientsThatAskNothingKeepNoOtherOut) {
    const auto server = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(server);
    const net::Descriptor scraper = connection_to(**server, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    std::array<char, 4096> answer{};
    ASSERT_GT(recv(scraper.number(), answer.data(), answer.size(), 0), 0);
    constexpr std::size_t more_than_served = 200;
    std::vector<net::Descriptor> idle;
    while (idle.size() < more_than_served) {
        idle.push_back(connection_to(**server, "GET / HTTP/1.1\r\n"));
        // As a scraper does now and then.
        if (idle.size() % 50 != 0) continue;
        ASSERT_EQ(send(scraper.number(), "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n", 28, MSG_NOSIGNAL), 28);
        ASSERT_GT(recv(scraper.number(), answer.data(), answer.size(), 0), 0) << "its connection stays";
    }
    EXPECT_THAT(answer_to(**server, closing("GET / HTTP/1.1")), StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(recv(idle.front().number(), answer.data(), answer.size(), 0), 0) << "the oldest one is broken";
    EXPECT_EQ(recv(idle.back().number(), answer.data(), answer.size(), MSG_DONTWAIT), -1) << "the newest is not";
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(HttpServer, ConnectionsThatEndedLeaveNoDescriptor) {
    const auto server = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(server);
    const std::ptrdiff_t before = open_descriptors();
    for (int i = 0; i < 50; ++i) {
        answer_to(**server, closing("GET / HTTP/1.1"));
        connection_to(**server, "GET / HT") = net::Descriptor();
        const net::Descriptor half = connection_to(**server, "GET / HTTP/1.0\r\n\r\n");
        shutdown(half.number(), SHUT_WR);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (open_descriptors() > before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(open_descriptors(), before);
}

TEST(HttpServer, ChangeOfAClientThatHasLeftIsNotCarriedOut) {
    std::atomic<int> changes = 0;
    std::atomic<bool> waits = true;
    const auto server = HttpServer::start(anywhere(), [&](const HttpRequest& request) {
        if (request.path == "/wait") waits.wait(true);
        if (request.method == "POST") ++changes;
        return HttpAnswer{};
    });
    ASSERT_TRUE(server);
    const net::Descriptor first = connection_to(**server, closing("GET /wait HTTP/1.1"));
    const std::string change = "POST /change HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    connection_to(**server, change) = net::Descriptor();  // it loses patience
    waits = false;
    waits.notify_all();
    EXPECT_THAT(answer_to(**server, closing("GET / HTTP/1.1")), StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(changes, 0);
    const net::Descriptor patient = connection_to(**server, change);
    std::array<char, 4096> answer{};
    EXPECT_GT(recv(patient.number(), answer.data(), answer.size(), 0), 0);
    EXPECT_EQ(changes, 1);
}

TEST(HttpServer, AddressInUseIsAnError) {
    const auto first = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(first);
    const auto second = HttpServer::start((*first)->address(), echo);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().reason, Reason::in_use);
}

}  // namespace
}  // namespace atp::metrics
