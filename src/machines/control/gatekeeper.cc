// SPDX-License-Identifier: Apache-2.0
#include "control/gatekeeper.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "control/branch.h"
#include "wire/bytes.h"

namespace atp::control {

std::uint64_t Gatekeeper::cookie_of(const wire::Address& address, Time now) const {
    const wire::Endpoint endpoint = endpoint_of(address);
    std::array<std::byte, 1 + 2 + sizeof endpoint.host + 8> message{};
    wire::store_u8(message.data(), endpoint.family);
    wire::store_u16(message.data() + 1, endpoint.port);
    std::memcpy(message.data() + 3, endpoint.host.data(), sizeof endpoint.host);
    wire::store_u64(message.data() + 3 + sizeof endpoint.host,
                    static_cast<std::uint64_t>(now.time_since_epoch() / cookie_period));
    return std::max<std::uint64_t>(siphash(secret_, message), 1);
}

std::optional<wire::Retry> Gatekeeper::handle_join(const wire::Join& join, const wire::Address& from, Time now) {
    const std::uint64_t cookie = cookie_of(from, now);
    if (join.cookie == cookie || join.cookie == cookie_of(from, now - cookie_period)) return std::nullopt;
    ++retries_;
    return wire::Retry{.nonce = join.nonce,
                       .job = join.terms.job,
                       .token = join.terms.token,
                       .channel = join.terms.channel,
                       .cookie = cookie};
}

}  // namespace atp::control
