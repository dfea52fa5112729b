// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>

// The library draws from these, which glibc has from 2.36 on only: with them, a wheel also runs on older systems.
extern "C" void arc4random_buf(void* to, std::size_t size) noexcept {
    auto* bytes = static_cast<unsigned char*>(to);
    while (size != 0) {
        const ssize_t got = getrandom(bytes, size, 0);
        if (got < 0) continue;  // interrupted
        bytes += got;
        size -= static_cast<std::size_t>(got);
    }
}
extern "C" std::uint32_t arc4random() noexcept {
    std::uint32_t number = 0;
    arc4random_buf(&number, sizeof number);
    return number;
}

namespace atp::metrics {
namespace {

constexpr int waiting_connections = 64;
constexpr int idle_seconds = 60;
constexpr std::size_t most_connections = 128;
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

// A process has ended without removing it.
bool is_left_behind(const sockaddr_un& address) {
    const net::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
           errno == ECONNREFUSED;
}

Result<net::Descriptor> listening_socket(const std::string& path) {
    if (auto good = HttpServer::check(path); !good) return tl::unexpected(good.error());
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::ranges::copy(path, address.sun_path);
    net::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, path);
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) && is_left_behind(address)) unlink(path.c_str());
    const mode_t usual = umask(0177);
    const int bound = bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int error = errno;
    umask(usual);
    if (bound != 0) return fail_with_errno(Operation::bind, error, path);
    if (listen(socket.number(), waiting_connections) != 0) return fail_with_errno(Operation::bind, errno, path);
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

std::string_view method_of(evhttp_request* request) {
    switch (evhttp_request_get_command(request)) {
        case EVHTTP_REQ_POST: return "POST";
        case EVHTTP_REQ_DELETE: return "DELETE";
        default: return "GET";
    }
}

// No exception may pass through the library, which is C.
HttpAnswer answer_of(const HttpServer::Handler& handler, const HttpRequest& request) {
    try {
        return handler(request);
    } catch (const std::exception&) {
        return {.status = 500, .body = "no memory or no threads\n"};
    }
}

// It has closed the connection, perhaps because it waited too long. It then believes that nothing has changed.
bool has_left(bufferevent* client) {
    char next = 0;
    const ssize_t size = recv(bufferevent_getfd(client), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

void send(evhttp_request* request, const HttpAnswer& answer) {
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

    // Open connections, the one first that has asked nothing for the longest time. Beyond `most_connections`, it ends:
    // clients that send a request slowly or never cannot take the descriptors of this process from others.
    class Connections {
      public:
        Connections() = default;
        ~Connections() {
            for (bufferevent* each : open_) bufferevent_decref(each);
        }
        Connections(const Connections&) = delete;
        Connections& operator=(const Connections&) = delete;

        // The library asks for it when it has accepted a connection, and gives it the socket afterwards.
        static bufferevent* accept(event_base* base, void* self) {
            bufferevent* const added = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
            if (added != nullptr) static_cast<Connections*>(self)->add(added);
            return added;
        }
        // The library no longer uses some. Until then they wait for events of their sockets, which are open as long.
        void release_freed() {
            open_.remove_if([](bufferevent* each) {
                const bool freed = was_freed(each);
                if (freed) bufferevent_decref(each);
                return freed;
            });
        }
        void has_asked(bufferevent* connection) {
            const auto found = std::ranges::find(open_, connection);
            if (found != open_.end()) open_.splice(open_.end(), open_, found);
        }

      private:
        void add(bufferevent* connection) {
            release_freed();
            if (open_.size() >= most_connections) {
                shutdown(bufferevent_getfd(open_.front()), SHUT_RDWR);  // so the library frees it
                bufferevent_decref(open_.front());
                open_.pop_front();
            }
            bufferevent_incref(connection);
            open_.push_back(connection);
        }
        // The library then asks for no news.
        static bool was_freed(bufferevent* connection) {
            bufferevent_data_cb read = nullptr;
            bufferevent_data_cb write = nullptr;
            bufferevent_event_cb event = nullptr;
            bufferevent_getcb(connection, &read, &write, &event, nullptr);
            return read == nullptr && write == nullptr && event == nullptr;
        }

        std::list<bufferevent*> open_;
    };

    explicit Library(Handler answers) : handler(std::move(answers)) {}

    Handler handler;
    std::unique_ptr<event_base, Released<event_base_free>> base{event_base_new()};
    Connections connections{};
    std::unique_ptr<evhttp, Released<evhttp_free>> http{base ? evhttp_new(base.get()) : nullptr};
    net::Descriptor bell{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    std::unique_ptr<event, Released<event_free>> end{};  // when the bell rings

    static void answer(evhttp_request* request, void* self) {
        Library& library = *static_cast<Library*>(self);
        bufferevent* const client = evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
        library.connections.has_asked(client);
        const std::string_view method = method_of(request);
        if (method != "GET" && has_left(client)) {
            evhttp_send_error(request, HTTP_BADREQUEST, nullptr);
            return;
        }
        const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
        const char* const path = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
        send(request, answer_of(library.handler, {.path = path == nullptr || *path == '\0' ? "/" : path,
                                                  .accept = header_of(request, "Accept"),
                                                  .authorization = header_of(request, "Authorization"),
                                                  .method = method}));
    }
    static void stop(evutil_socket_t, short, void* base) { event_base_loopbreak(static_cast<event_base*>(base)); }

    // Without a free descriptor, the connection stays in the queue. Asking again at once would only fill a core.
    static void pause(evconnlistener* listener, void* /*http*/) {
        constexpr timeval a_while{.tv_sec = 1, .tv_usec = 0};
        evconnlistener_disable(listener);
        event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, accept_again, listener, &a_while);
    }
    static void accept_again(evutil_socket_t, short, void* listener) {
        evconnlistener_enable(static_cast<evconnlistener*>(listener));
    }

    // The library closes the socket. False: no memory.
    bool listen_at(net::Descriptor socket) {
        evhttp_bound_socket* const bound = evhttp_accept_socket_with_handle(http.get(), socket.number());
        if (bound == nullptr) return false;
        (void)socket.release();
        evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), pause);
        return true;
    }

    // False: no memory or no descriptors.
    bool prepare() {
        if (!base || !http || !bell.valid()) return false;
        end.reset(event_new(base.get(), bell.number(), EV_READ, stop, base.get()));
        return end && event_add(end.get(), nullptr) == 0;
    }
};

HttpServer::HttpServer(const wire::Address& address, std::unique_ptr<Library> library,
                       const std::function<void()>& enter_thread)
    : address_(address), library_(std::move(library)) {
    evhttp* const http = library_->http.get();
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_DELETE);
    evhttp_set_max_headers_size(http, most_header_bytes);
    evhttp_set_max_body_size(http, most_body_bytes);
    evhttp_set_timeout(http, idle_seconds);
    evhttp_set_bevcb(http, Library::Connections::accept, &library_->connections);
    evhttp_set_gencb(http, Library::answer, library_.get());
    thread_ = std::thread([this, enter_thread] {
        sigset_t all;  // signals are for other threads
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), "atp-http");
        if (enter_thread) enter_thread();
        event_base* const base = library_->base.get();
        while (event_base_loop(base, EVLOOP_ONCE) == 0 && event_base_got_break(base) == 0) {
            library_->connections.release_freed();
        }
    });
}

HttpServer::~HttpServer() {
    eventfd_write(library_->bell.number(), 1);
    thread_.join();
    if (!path_.empty()) unlink(path_.c_str());
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const wire::Address& local, Handler handler,
                                                      const std::function<void()>& enter_thread) {
    auto socket = listening_socket(local);
    if (!socket) return tl::unexpected(socket.error());
    return serve(*std::move(socket), to_string(local), std::move(handler), enter_thread);
}

Result<std::unique_ptr<HttpServer>> HttpServer::start_at(const std::string& path, Handler handler,
                                                         const std::function<void()>& enter_thread) {
    auto socket = listening_socket(path);
    if (!socket) return tl::unexpected(socket.error());
    auto server = serve(*std::move(socket), path, std::move(handler), enter_thread);
    if (server) (*server)->path_ = path;
    return server;
}

Result<void> HttpServer::check(const std::string& path) {
    if (path.size() >= sizeof(sockaddr_un::sun_path)) return fail_with_errno(Operation::bind, ENAMETOOLONG, path);
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
        // errors.md, starts, malformed: `--control` names a file or a folder
        return fail(Operation::bind, Reason::malformed, path, "this is no socket: name a path where nothing is");
    }
    return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::serve(net::Descriptor socket, const std::string& place, Handler handler,
                                                      const std::function<void()>& enter_thread) {
    auto library = std::make_unique<Library>(std::move(handler));
    if (!library->prepare()) return fail(Operation::open, Reason::exhausted, place, "no memory for HTTP");
    const wire::Address address = address_of(socket);
    if (!library->listen_at(std::move(socket))) {
        return fail(Operation::open, Reason::exhausted, place, "no memory for HTTP");
    }
    return std::unique_ptr<HttpServer>(new HttpServer(address, std::move(library), enter_thread));
}

}  // namespace atp::metrics
