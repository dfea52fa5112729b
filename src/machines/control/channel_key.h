// SPDX-License-Identifier: Apache-2.0
// Keys of an incarnation of a job and of its channels. protocol/{worker,server,switch}.cc drop packets of another
// incarnation as `forged`.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/bytes.h"
#include "wire/control.h"

namespace atp::control {

// An incarnation of a job. Two incarnations of one job have nothing in common: a wrong token names another job.
struct JobKey {
    std::uint32_t job = 0;
    std::uint64_t token = 0;

    auto operator<=>(const JobKey&) const = default;
};

// A channel of an incarnation.
struct ChannelKey {
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint16_t channel = 0;

    [[nodiscard]] JobKey of_job() const { return {job, token}; }
    auto operator<=>(const ChannelKey&) const = default;
};

// The channel of a message or of terms: of what has these fields.
template <class Message>
[[nodiscard]] ChannelKey key_of(const Message& message) {
    return {message.job, message.token, message.channel};
}

[[nodiscard]] inline ChannelKey key_of(const wire::Join& join) { return key_of(join.terms); }

// Of a message about a channel, all of which begin with nonce, job, token and channel; nullopt: it is too short.
[[nodiscard]] inline std::optional<ChannelKey> key_of_message(std::span<const std::byte> bytes) {
    constexpr std::size_t job_at = wire::control_prefix_bytes + 8;
    constexpr std::size_t token_at = job_at + 4;
    constexpr std::size_t channel_at = token_at + 8;
    if (bytes.size() < channel_at + 2) return std::nullopt;
    return ChannelKey{wire::load_u32(bytes.data() + job_at), wire::load_u64(bytes.data() + token_at),
                      wire::load_u16(bytes.data() + channel_at)};
}

}  // namespace atp::control
