// SPDX-License-Identifier: Apache-2.0
// Keys of an incarnation of a job and of its channels. protocol/{worker,server,switch}.cc drop packets of another
// incarnation as `forged`.
#pragma once

#include <compare>
#include <cstdint>

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

}  // namespace atp::control
