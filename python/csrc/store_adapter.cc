// SPDX-License-Identifier: Apache-2.0
#include "store_adapter.h"

#include <algorithm>
#include <exception>

#include "comm/refusal.h"
#include "net/clock.h"

namespace atp::python {
namespace {

using net::Result;
using protocol::Time;

// A c10d store adds what it is given to its own clock, which "for ever" would overflow.
constexpr protocol::Duration longest_wait = std::chrono::hours(24);

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
    const protocol::Duration left = std::min<protocol::Duration>(deadline - std::min(begin, deadline), longest_wait);
    // A c10d store takes zero for its own timeout.
    const auto milliseconds =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(left), std::chrono::milliseconds(1));
    auto waited = guarded([&] { store_->wait(std::vector<std::string>(keys.begin(), keys.end()), milliseconds); });
    if (waited || net::now() < deadline) return waited;
    const auto absent = missing(keys);
    if (!absent) return tl::unexpected(absent.error());
    if (absent->empty()) return {};
    return comm::nobody_has_set(*absent, {}, net::now() - begin);
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
