// SPDX-License-Identifier: Apache-2.0
#include "store_adapter.h"

#include <algorithm>
#include <exception>

#include "comm/refusal.h"
#include "net/clock.h"
#include "signals.h"

namespace atp::python {
namespace {

using net::Result;
using protocol::Time;

// No wait of a c10d store can be ended from outside, so a long one is made of several.
constexpr protocol::Duration longest_step = std::chrono::seconds(1);

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
        return net::fail(net::Operation::rendezvous, net::Reason::failed, {}, error.what_without_backtrace());
    } catch (const std::exception& error) {
        return net::fail(net::Operation::rendezvous, net::Reason::failed, {}, error.what());
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
    const Time begin = net::now();
    while (true) {
        const Time now = net::now();
        auto waited = wait_once(keys, std::min(deadline, now + longest_step));
        if (waited || waited.error().reason != net::Reason::timed_out) return waited;
        if (net::now() >= deadline) break;
        try {
            handle_signals();
        } catch (...) {
            interruption_ = std::current_exception();
            return net::fail(net::Operation::rendezvous, net::Reason::closed, {}, "interrupted by a signal");
        }
    }
    const auto absent = missing(keys);
    if (!absent) return tl::unexpected(absent.error());
    if (absent->empty()) return {};
    return comm::nobody_has_set(*absent, {}, net::now() - begin);
}

Result<void> StoreAdapter::wait_once(std::span<const std::string> keys, Time until) {
    // A c10d store takes zero for its own timeout.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::min(net::now(), until));
    const auto milliseconds = std::max(left, std::chrono::milliseconds(1));
    auto waited = guarded([&] { store_->wait(std::vector<std::string>(keys.begin(), keys.end()), milliseconds); });
    if (!waited && net::now() >= until) waited.error().reason = net::Reason::timed_out;
    return waited;
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
