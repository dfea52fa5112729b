// SPDX-License-Identifier: Apache-2.0
#include "store_adapter.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "net/clock.h"
#include "signals.h"
#include "store/store_refusal.h"

namespace atp::python {
namespace {

// A c10d store's own wait cannot be interrupted and prints to stderr when it times out. This adapter polls instead,
// with pauses that grow with the time waited.
constexpr Duration shortest_pause = std::chrono::milliseconds(1);
constexpr Duration longest_pause = std::chrono::milliseconds(500);
constexpr int pauses_of_a_wait = 8;

template <class Call>
auto guarded(const Call& call) -> Result<decltype(call())> {
    try {
        if constexpr (std::is_void_v<decltype(call())>) {
            call();
            return {};
        } else {
            return call();
        }
    } catch (const c10::Error& error) {
        return fail(Operation::rendezvous, Reason::failed, {}, error.what_without_backtrace());
    } catch (const std::exception& error) {
        return fail(Operation::rendezvous, Reason::failed, {}, error.what());
    }
}

}  // namespace

Result<void> StoreAdapter::set(std::string_view key, std::string_view value) {
    return guarded([&] { store_->set(std::string(key), std::vector<std::uint8_t>(value.begin(), value.end())); });
}

Result<std::int64_t> StoreAdapter::add(std::string_view key, std::int64_t delta) {
    return guarded([&]() -> std::int64_t { return store_->add(std::string(key), delta); });
}

Result<void> StoreAdapter::wait(std::span<const std::string> keys, Time deadline) {
    const std::vector<std::string> requested(keys.begin(), keys.end());
    const Time begin = net::now();
    while (true) {
        const auto there = guarded([&] { return store_->check(requested); });
        if (!there) return tl::unexpected(there.error());
        if (*there) return {};
        const Time now = net::now();
        if (now >= deadline) break;
        try {
            handle_signals();
        } catch (...) {
            interruption_ = std::current_exception();
            return fail(Operation::rendezvous, Reason::closed, {}, "interrupted by a signal");
        }
        const auto pause = std::clamp((now - begin) / pauses_of_a_wait, shortest_pause, longest_pause);
        std::this_thread::sleep_for(std::min(pause, deadline - now));
    }
    const auto absent = missing(keys);
    if (!absent) return tl::unexpected(absent.error());
    if (absent->empty()) return {};
    return store::keys_not_set(*absent, {}, net::now() - begin);
}

Result<std::vector<std::string>> StoreAdapter::get_all(std::span<const std::string> keys, Time deadline) {
    if (auto there = wait(keys, deadline); !there) return tl::unexpected(std::move(there).error());
    return guarded([&] {
        std::vector<std::string> values;
        for (const std::string& key : keys) {
            const std::vector<std::uint8_t> value = store_->get(key);
            values.emplace_back(value.begin(), value.end());
        }
        return values;
    });
}

Result<std::vector<std::string>> StoreAdapter::missing(std::span<const std::string> keys) {
    return guarded([&] {
        std::vector<std::string> absent;
        for (const std::string& key : keys) {
            if (!store_->check({key})) absent.push_back(key);
        }
        return absent;
    });
}

Result<std::size_t> StoreAdapter::remove(std::string_view) { return std::size_t{0}; }

}  // namespace atp::python
