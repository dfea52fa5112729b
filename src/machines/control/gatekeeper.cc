// SPDX-License-Identifier: Apache-2.0
#include "control/gatekeeper.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "control/branch.h"
#include "control/channel_key.h"
#include "wire/bytes.h"

namespace atp::control {
namespace {

// Of the fields of a JOIN (docs/spec/joining.md).
constexpr std::size_t cookie_at = 107;
static_assert(cookie_at + 8 <= wire::least_question_bytes);

}  // namespace

std::uint64_t Gatekeeper::cookie_of(Question question, const wire::Address& address, Time now) const {
    const wire::Endpoint endpoint = endpoint_of(address);
    constexpr std::size_t host_at = 1 + 1 + 2;
    std::array<std::byte, host_at + sizeof endpoint.host + 8> message{};
    wire::store_u8(message.data(), static_cast<std::uint8_t>(question));
    wire::store_u8(message.data() + 1, endpoint.family);
    wire::store_u16(message.data() + 2, endpoint.port);
    std::memcpy(message.data() + host_at, endpoint.host.data(), sizeof endpoint.host);
    wire::store_u64(message.data() + host_at + sizeof endpoint.host,
                    static_cast<std::uint64_t>(now.time_since_epoch() / period_));
    return std::max<std::uint64_t>(siphash(secret_, message), 1);
}

std::optional<std::uint64_t> Gatekeeper::missing(Question question, std::uint64_t cookie, const wire::Address& from,
                                                 Time now) {
    const std::uint64_t valid = cookie_of(question, from, now);
    if (cookie == valid) return std::nullopt;
    if (cookie != 0 && cookie == cookie_of(question, from, now - period_)) return std::nullopt;
    ++retries_;
    return valid;
}

std::optional<wire::Retry> Gatekeeper::handle_join(std::span<const std::byte> bytes, const wire::Address& from,
                                                   Time now) {
    if (wire::control_type(bytes) != wire::ControlType::join) return std::nullopt;
    // No answer is longer than its question. What is shorter than a JOIN may be is dropped later, and counted.
    if (bytes.size() < wire::least_question_bytes) return std::nullopt;
    const auto cookie = missing(Question::join, wire::load_u64(bytes.data() + cookie_at), from, now);
    if (!cookie) return std::nullopt;
    const ChannelKey key = *key_of_message(bytes);
    return wire::Retry{.nonce = *wire::nonce_of(bytes),
                       .job = key.job,
                       .token = key.token,
                       .channel = key.channel,
                       .cookie = *cookie,
                       .boot = introduction_.boot,
                       .name = introduction_.name};
}

std::optional<wire::Retry> Gatekeeper::handle_join(const wire::Join& join, const wire::Address& from, Time now) {
    const auto cookie = missing(Question::join, join.cookie, from, now);
    if (!cookie) return std::nullopt;
    return wire::Retry{.nonce = join.nonce,
                       .job = join.terms.job,
                       .token = join.terms.token,
                       .channel = join.terms.channel,
                       .cookie = *cookie,
                       .boot = introduction_.boot,
                       .name = introduction_.name};
}

std::optional<wire::Retry> Gatekeeper::handle_stats(const wire::Stats& stats, const wire::Address& from, Time now) {
    const auto cookie = missing(Question::stats, stats.cookie, from, now);
    if (!cookie) return std::nullopt;
    return wire::Retry{.nonce = stats.nonce, .job = 0, .token = 0, .channel = 0, .cookie = *cookie};
}

}  // namespace atp::control
