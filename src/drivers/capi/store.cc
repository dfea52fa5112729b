// SPDX-License-Identifier: Apache-2.0
#include "capi/store.h"

#include <atp/atp.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "capi/convert.h"
#include "net/clock.h"
#include "net/resolve.h"
#include "store/memory_store.h"
#include "store/tcp_store.h"
#include "store/tcp_store_server.h"

namespace atp::capi {
namespace {

using store::Store;

// A store that the program implements with callbacks.
//
// Ownership: copies the callbacks; their context belongs to the program. Calling order: that of Store.
// Threads: callbacks run on the calling thread. Failure: the reason that a callback returns.
class CallbackStore final : public Store {
  public:
    explicit CallbackStore(const atp_store_callbacks& callbacks) : callbacks_(callbacks) {}

    Result<void> set(std::string_view key, std::string_view value) override {
        const std::string name(key);
        return outcome(callbacks_.set(callbacks_.context, name.c_str(), value.data(), value.size()), name);
    }

    Result<std::int64_t> add(std::string_view key, std::int64_t delta) override {
        const std::string name(key);
        std::int64_t sum = 0;
        if (callbacks_.add != nullptr) {
            auto done = outcome(callbacks_.add(callbacks_.context, name.c_str(), delta, &sum), name);
            return done ? Result<std::int64_t>(sum) : tl::unexpected(done.error());
        }
        const auto before = look(name, {});
        if (!before) return tl::unexpected(before.error());
        if (*before) std::from_chars((*before)->data(), (*before)->data() + (*before)->size(), sum);
        sum += delta;
        const auto done = set(key, std::to_string(sum));
        return done ? Result<std::int64_t>(sum) : tl::unexpected(done.error());
    }

    Result<void> wait(std::span<const std::string> keys, Time deadline) override {
        const auto values = get_all(keys, deadline);
        return values ? Result<void>() : tl::unexpected(values.error());
    }

    Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override {
        const Time begin = net::now();
        std::vector<std::string> values;
        for (const std::string& key : keys) {
            auto value = look(key, deadline - std::min(deadline, net::now()));
            if (!value) return tl::unexpected(value.error());
            if (!*value) {
                return tl::unexpected(Error{.operation = Operation::rendezvous,
                                            .reason = Reason::timed_out,
                                            .elapsed = net::now() - begin,
                                            .text = "no rank has set '" + key + "'"});
            }
            values.push_back(**std::move(value));
        }
        return values;
    }

    Result<std::vector<std::string>> missing(std::span<const std::string> keys) override {
        std::vector<std::string> absent;
        for (const std::string& key : keys) {
            const auto value = look(key, {});
            if (!value) return tl::unexpected(value.error());
            if (!*value) absent.push_back(key);
        }
        return absent;
    }

    // Does nothing: the program itself removes keys of earlier generations.
    Result<std::size_t> remove(std::string_view) override { return std::size_t{0}; }
    void close() noexcept override {}

  private:
    // nullopt: the key is missing after `timeout`.
    Result<std::optional<std::string>> look(const std::string& key, Duration timeout) {
        std::string value(store::max_value_bytes, '\0');
        std::size_t size = 0;
        const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
        const int reason =
            callbacks_.get(callbacks_.context, key.c_str(), milliseconds, value.data(), value.size(), &size);
        if (reason == ATP_REASON_TIMED_OUT) return std::nullopt;
        if (auto done = outcome(reason, key); !done) return tl::unexpected(done.error());
        value.resize(std::min(size, value.size()));
        return value;
    }
    static Result<void> outcome(int reason, const std::string& key) {
        if (reason == ATP_REASON_NONE) return {};
        return fail(Operation::rendezvous, reason_from(reason), {},
                    "a callback of the store failed on key '" + key + "'");
    }

    atp_store_callbacks callbacks_;
};

// As options_from(): the struct of an older program is shorter, and the one of a newer program may be longer.
Result<atp_store_callbacks> callbacks_from(const atp_store_callbacks* callbacks) {
    atp_store_callbacks known{};
    if (callbacks != nullptr) std::memcpy(&known, callbacks, std::min(callbacks->struct_size, sizeof known));
    if (known.set == nullptr || known.get == nullptr) {
        return tl::unexpected(malformed("`callbacks` is NULL, or lacks struct_size, set or get"));
    }
    if (sets_beyond(callbacks, sizeof known, known.struct_size)) {
        return tl::unexpected(
            // errors.md, calls, malformed: the program was compiled with a newer atp.h
            malformed("`callbacks` sets fields that this version of the library lacks: set them to 0, or install a "
                      "newer libatp"));
    }
    return known;
}

Result<wire::Address> address_from(const char* text) {
    if (text == nullptr) return tl::unexpected(malformed("the address is NULL"));
    const auto addresses = net::resolve(text);
    if (!addresses) return tl::unexpected(addresses.error());
    return addresses->front();
}

}  // namespace
}  // namespace atp::capi

struct atp_store_server {
    std::unique_ptr<atp::store::TcpStoreServer> server;
    std::string address;
};

using atp::capi::guarded;

extern "C" {

int atp_store_from_callbacks(const struct atp_store_callbacks* callbacks, atp_store** store, struct atp_error* error) {
    if (store != nullptr) *store = nullptr;
    return guarded(error, [&]() -> atp::Result<void> {
        if (store == nullptr) return tl::unexpected(atp::capi::malformed("`store` is NULL"));
        const auto understood = atp::capi::callbacks_from(callbacks);
        if (!understood) return tl::unexpected(understood.error());
        *store = new atp_store{std::make_unique<atp::capi::CallbackStore>(*understood)};
        return {};
    });
}

int atp_store_connect(const char* address, int64_t timeout_ms, atp_store** store, struct atp_error* error) {
    if (store != nullptr) *store = nullptr;
    return guarded(error, [&]() -> atp::Result<void> {
        if (store == nullptr) return tl::unexpected(atp::capi::malformed("`store` is NULL"));
        const auto server = atp::capi::address_from(address);
        if (!server) return tl::unexpected(server.error());
        const auto deadline = timeout_ms <= 0 ? atp::net::now() : atp::capi::deadline_from(timeout_ms);
        auto connected = atp::store::TcpStore::connect(*server, deadline);
        if (!connected) return tl::unexpected(connected.error());
        *store = new atp_store{*std::move(connected)};
        return {};
    });
}

int atp_store_in_memory(atp_store** store, struct atp_error* error) {
    return guarded(error, [&]() -> atp::Result<void> {
        if (store == nullptr) return tl::unexpected(atp::capi::malformed("`store` is NULL"));
        *store = nullptr;
        *store = new atp_store{std::make_unique<atp::store::MemoryStore>()};
        return {};
    });
}

void atp_store_destroy(atp_store* store) { delete store; }

int atp_store_server_start(const char* listen, atp_store_server** server, struct atp_error* error) {
    if (server != nullptr) *server = nullptr;
    return guarded(error, [&]() -> atp::Result<void> {
        if (server == nullptr) return tl::unexpected(atp::capi::malformed("`server` is NULL"));
        const auto address = atp::capi::address_from(listen);
        if (!address) return tl::unexpected(address.error());
        auto started = atp::store::TcpStoreServer::start(*address);
        if (!started) return tl::unexpected(started.error());
        std::string text = to_string((*started)->local());
        *server = new atp_store_server{*std::move(started), std::move(text)};
        return {};
    });
}

const char* atp_store_server_address(const atp_store_server* server) { return server->address.c_str(); }

void atp_store_server_destroy(atp_store_server* server) { delete server; }

}  // extern "C"
