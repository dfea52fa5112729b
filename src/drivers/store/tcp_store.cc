// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "net/clock.h"
#include "store/store_table.h"

namespace atp::store {
namespace {

using net::after;

constexpr Duration shortest_pause = std::chrono::milliseconds(10);
constexpr Duration longest_pause = std::chrono::milliseconds(500);

// A server that starts or stops may close a connection before it answers `hello`.
bool worth_another_try(const Error& error) { return error.recoverable() || error.reason == Reason::closed; }

Error could_not_connect(Error error, Duration elapsed) {
    error.operation = Operation::connect;
    error.elapsed = elapsed;
    if (error.text.empty()) error.text = "check that rank 0 runs and serves the store";
    return error;
}

// A request with the first of `keys`, as many as fit.
StoreRequest request_for(Kind kind, std::span<const std::string> keys) {
    const auto some = keys.first(std::min(keys.size(), max_keys_per_request));
    return {.kind = kind, .number = 0, .keys = {some.begin(), some.end()}, .value = {}};
}

bool waits(Kind kind) { return kind == Kind::get || kind == Kind::wait; }

// After these replies the server closes the connection, because the request violated the protocol.
bool ends_the_connection(StoreStatus status) {
    return status == StoreStatus::malformed || status == StoreStatus::version_mismatch ||
           status == StoreStatus::too_large;
}

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::connect(const wire::Address& server, Time deadline,
                                                    const TcpStoreConfig& config) {
    const Time start = net::now();
    Duration pause = shortest_pause;
    std::optional<Error> earlier;
    for (;;) {
        const Time begun = net::now();
        auto connection = TcpConnection::open(server, std::min(deadline, after(begun, config.attempt_timeout)));
        // The constructor is private, so make_unique cannot call it.
        if (connection) return std::unique_ptr<TcpStore>(new TcpStore(*std::move(connection), config));
        const Time now = net::now();
        Error error = std::move(connection).error();
        // If the deadline cut this attempt short, the error of the attempt before it is more useful.
        if (earlier && error.reason == Reason::timed_out && now - begun < longest_pause) error = *earlier;
        if (now >= deadline || !worth_another_try(error)) {
            return Failure(could_not_connect(std::move(error), now - start));
        }
        earlier = std::move(error);
        std::this_thread::sleep_for(std::min(pause, deadline - now));
        pause = std::min(pause * 2, longest_pause);
    }
}

Result<void> TcpStore::set(std::string_view key, std::string_view value) {
    const auto reply = ask({.kind = Kind::set, .number = 0, .keys = {std::string(key)}, .value = std::string(value)});
    if (!reply) return Failure(reply.error());
    return {};
}

Result<std::int64_t> TcpStore::add(std::string_view key, std::int64_t delta) {
    const auto reply = ask({.kind = Kind::add, .number = delta, .keys = {std::string(key)}, .value = {}});
    if (!reply) return Failure(reply.error());
    return reply->number;
}

Result<void> TcpStore::wait(std::span<const std::string> keys, Time deadline) {
    while (!keys.empty()) {
        const StoreRequest request = request_for(Kind::wait, keys);
        if (const auto reply = ask(request, deadline); !reply) return Failure(reply.error());
        keys = keys.subspan(request.keys.size());
    }
    return {};
}

Result<std::vector<std::string>> TcpStore::get_all(std::span<const std::string> keys, Time deadline) {
    std::vector<std::string> values;
    values.reserve(keys.size());
    while (values.size() < keys.size()) {
        const StoreRequest request = request_for(Kind::get, keys.subspan(values.size()));
        auto reply = ask(request, deadline);
        if (!reply) return Failure(std::move(reply).error());
        if (reply->fields.empty() || reply->fields.size() > request.keys.size()) {
            return fail(Operation::rendezvous, Reason::malformed, peer(),
                        "the reply has more or fewer values than requested");
        }
        std::ranges::move(reply->fields, std::back_inserter(values));
    }
    return values;
}

Result<std::vector<std::string>> TcpStore::missing(std::span<const std::string> keys) {
    std::vector<std::string> names;
    while (!keys.empty()) {
        const StoreRequest request = request_for(Kind::missing, keys);
        auto reply = ask(request);
        if (!reply) return Failure(std::move(reply).error());
        std::ranges::move(reply->fields, std::back_inserter(names));
        keys = keys.subspan(request.keys.size());
    }
    return names;
}

Result<std::size_t> TcpStore::remove(std::string_view prefix) {
    const auto reply = ask({.kind = Kind::remove, .number = 0, .keys = {std::string(prefix)}, .value = {}});
    if (!reply) return Failure(reply.error());
    return static_cast<std::size_t>(reply->number);
}

void TcpStore::close() noexcept {
    closed_.store(true, std::memory_order_release);
    connection_.end();
}

Result<Reply> TcpStore::ask(const StoreRequest& request) {
    return ask(request, after(net::now(), config_.answer_timeout));
}

Result<Reply> TcpStore::ask(const StoreRequest& request, Time deadline) {
    if (const auto checked = check_keys(request.keys); !checked) return to_failure(checked.error(), peer());
    if (const auto checked = check_value(request.value); !checked) return to_failure(checked.error(), peer());
    if (broken_ || closed_.load(std::memory_order_acquire)) return ended();
    const Time start = net::now();
    auto reply = exchange(request, deadline);
    if (!reply) {
        if (closed_.load(std::memory_order_acquire)) return ended();
        Error& error = reply.error();
        error.elapsed = net::now() - start;
        error.text = fmt::format("{} '{}': {}", to_string(request.kind), request.keys.front(), error.text);
        broken_ = error;  // a late reply would be taken for the reply to the next request
        return reply;
    }
    if (reply->status == StoreStatus::done) return reply;
    if (reply->status == StoreStatus::cancelled) return keys_not_set(reply->fields, peer(), net::now() - start);
    auto refused = to_failure({reply->status, reply->fields.empty() ? std::string() : reply->fields.front()}, peer());
    if (ends_the_connection(reply->status)) broken_ = refused.value();
    return refused;
}

Result<Reply> TcpStore::exchange(const StoreRequest& request, Time deadline) {
    const Time longest_wait = after(net::now(), config_.answer_timeout);
    if (auto sent = connection_.send(encode(request), longest_wait); !sent) return Failure(std::move(sent).error());
    auto reply = connection_.receive(deadline);
    const bool timed_out = !reply && reply.error().reason == Reason::timed_out;
    return timed_out && waits(request.kind) ? cancel() : reply;
}

// Returns either the missing keys, or the reply that the server sent before it received `cancel`.
Result<Reply> TcpStore::cancel() {
    const Time longest_wait = after(net::now(), config_.last_word_timeout);
    const StoreRequest request{.kind = Kind::cancel, .number = 0, .keys = {}, .value = {}};
    if (auto sent = connection_.send(encode(request), longest_wait); !sent) return Failure(std::move(sent).error());
    return connection_.receive(longest_wait);
}

Failure TcpStore::ended() const {
    if (closed_.load(std::memory_order_acquire)) {
        return fail(Operation::rendezvous, Reason::closed, peer(), "this process closed the store");
    }
    return fail(Operation::rendezvous, Reason::closed, peer(),
                "an earlier error closed this connection: " + to_string(*broken_));
}

}  // namespace atp::store
