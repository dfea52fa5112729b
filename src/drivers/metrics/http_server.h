// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/descriptor.h"
#include "wire/address.h"

namespace atp::metrics {

struct HttpRequest {
    std::string_view path;      // begins with a slash; without a query
    std::string_view accept{};  // of these headers, empty if the client sends none
    std::string_view authorization{};
    std::string_view method = "GET";  // HEAD is GET here
};

struct HttpAnswer {
    int status = 200;
    std::string_view type = "text/plain; charset=utf-8";
    std::string body{};
    std::vector<std::pair<std::string_view, std::string_view>> headers{};  // further ones
};

// Answers GET, HEAD, POST and DELETE over HTTP. Requests have no body.
//
// Ownership: owns a listening socket and a thread, which calls the handler for one request after the other.
// Calling order: start(); the destructor ends the thread, and breaks connections.
// Failure: start() returns why the address cannot be used. A client that sends too much or nothing for a minute is
//   disconnected, and of more than 128 connections the one that has asked nothing for the longest time. Other clients
//   are not affected, unless the handler waits. POST and DELETE of a client that no longer waits are not carried out.
class HttpServer {
  public:
    using Handler = std::function<HttpAnswer(const HttpRequest&)>;

    // `enter_thread`: called first by the thread; empty: nothing is.
    [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const wire::Address& local, Handler handler,
                                                                   const std::function<void()>& enter_thread = {});
    // At a local socket, which only the user of this process may use. A socket that an ended process left behind is
    // replaced.
    [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start_at(const std::string& path, Handler handler,
                                                                      const std::function<void()>& enter_thread = {});
    // Whether start_at() can use this path: nothing is there, or a socket. The folder is not looked at.
    [[nodiscard]] static Result<void> check(const std::string& path);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // With the port that the kernel chose, if `local` had none.
    [[nodiscard]] const wire::Address& address() const { return address_; }

  private:
    struct Library;

    [[nodiscard]] static Result<std::unique_ptr<HttpServer>> serve(net::Descriptor socket, const std::string& place,
                                                                   Handler handler,
                                                                   const std::function<void()>& enter_thread);
    HttpServer(const wire::Address& address, std::unique_ptr<Library> library,
               const std::function<void()>& enter_thread);

    wire::Address address_;
    std::unique_ptr<Library> library_;
    std::string path_;  // of a local socket; empty: none
    std::thread thread_;
};

}  // namespace atp::metrics
