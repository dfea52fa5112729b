// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <string>

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

TEST(HttpServer, AddressInUseIsAnError) {
    const auto first = HttpServer::start(anywhere(), echo);
    ASSERT_TRUE(first);
    const auto second = HttpServer::start((*first)->address(), echo);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().reason, Reason::in_use);
}

}  // namespace
}  // namespace atp::metrics
