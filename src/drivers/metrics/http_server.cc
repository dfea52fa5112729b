// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_server.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>

namespace atp::metrics {
namespace {

constexpr int waiting_connections = 64;
constexpr int idle_seconds = 60;
constexpr ev_ssize_t most_header_bytes = 8192;
constexpr ev_ssize_t most_body_bytes = 0;

Result<net::Descriptor> listening_socket(const wire::Address& local) {
    net::Descriptor socket(::socket(local.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const std::string place = to_string(local);
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, place);
    const int reuse = 1;
    setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    if (bind(socket.number(), local.data(), local.size()) != 0) return fail_with_errno(Operation::bind, errno, place);
    if (listen(socket.number(), waiting_connections) != 0) return fail_with_errno(Operation::bind, errno, place);
    return socket;
}

wire::Address address_of(const net::Descriptor& socket) {
    sockaddr_storage bytes{};
    socklen_t size = sizeof bytes;
    getsockname(socket.number(), reinterpret_cast<sockaddr*>(&bytes), &size);
    return wire::Address::from(reinterpret_cast<const sockaddr*>(&bytes), size);
}

std::string_view header_of(evhttp_request* request, const char* name) {
    const char* const value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
    return value == nullptr ? std::string_view() : value;
}

void answer(evhttp_request* request, void* handler) {
    const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
    const char* const path = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
    const HttpAnswer answer =
        (*static_cast<HttpServer::Handler*>(handler))({.path = path == nullptr || *path == '\0' ? "/" : path,
                                                       .accept = header_of(request, "Accept"),
                                                       .authorization = header_of(request, "Authorization")});
    evkeyvalq* const headers = evhttp_request_get_output_headers(request);
    const auto add = [&](std::string_view name, std::string_view value) {
        evhttp_add_header(headers, std::string(name).c_str(), std::string(value).c_str());
    };
    add("Content-Type", answer.type);
    for (const auto& [name, value] : answer.headers) add(name, value);
    const std::unique_ptr<evbuffer, decltype(&evbuffer_free)> body(evbuffer_new(), evbuffer_free);
    if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
        add("Content-Length", std::to_string(answer.body.size()));
    } else {
        evbuffer_add(body.get(), answer.body.data(), answer.body.size());
    }
    evhttp_send_reply(request, answer.status, nullptr, body.get());
}

}  // namespace

struct HttpServer::Library {
    template <auto release>
    struct Released {
        template <class Object>
        void operator()(Object* object) const {
            release(object);
        }
    };

    std::unique_ptr<event_base, Released<event_base_free>> base{event_base_new()};
    std::unique_ptr<evhttp, Released<evhttp_free>> http{base ? evhttp_new(base.get()) : nullptr};
    net::Descriptor bell{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    std::unique_ptr<event, Released<event_free>> end{};  // when the bell rings

    static void stop(evutil_socket_t, short, void* base) { event_base_loopbreak(static_cast<event_base*>(base)); }

    // False: no memory or no descriptors.
    bool prepare() {
        if (!base || !http || !bell.valid()) return false;
        end.reset(event_new(base.get(), bell.number(), EV_READ, stop, base.get()));
        return end && event_add(end.get(), nullptr) == 0;
    }
};

HttpServer::HttpServer(Handler handler, const wire::Address& address, std::unique_ptr<Library> library)
    : handler_(std::move(handler)), address_(address), library_(std::move(library)) {
    evhttp* const http = library_->http.get();
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_max_headers_size(http, most_header_bytes);
    evhttp_set_max_body_size(http, most_body_bytes);
    evhttp_set_timeout(http, idle_seconds);
    evhttp_set_gencb(http, answer, &handler_);
    thread_ = std::thread([this] {
        sigset_t all;  // signals are for other threads
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), "atp-http");
        event_base_dispatch(library_->base.get());
    });
}

HttpServer::~HttpServer() {
    eventfd_write(library_->bell.number(), 1);
    thread_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const wire::Address& local, Handler handler) {
    auto socket = listening_socket(local);
    if (!socket) return tl::unexpected(socket.error());
    auto library = std::make_unique<Library>();
    if (!library->prepare()) return fail(Operation::open, Reason::exhausted, to_string(local), "no memory for HTTP");
    const wire::Address address = address_of(*socket);
    // The library closes the socket.
    if (evhttp_accept_socket(library->http.get(), socket->release()) != 0) {
        return fail(Operation::open, Reason::exhausted, to_string(local), "no memory for HTTP");
    }
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(handler), address, std::move(library)));
}

}  // namespace atp::metrics
