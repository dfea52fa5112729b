// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "control/address_range.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::control {

// Whether the sender of a JOIN receives at its address. Others can forge an address, but do not receive what is sent to
// it: a JOIN counts only with the cookie that a RETRY brought to its address. A RETRY is shorter than the JOIN, and
// leaves no state. A cookie is a code of address and minute, and is valid for one to two minutes.
//
// Threads: none. Shards of one switch have equal secrets.
// Failure: none.
class Gatekeeper {
  public:
    static constexpr Duration cookie_period = std::chrono::minutes(1);

    // `clients`: who may ask this switch; empty: any host.
    explicit Gatekeeper(const Secret& secret, std::vector<AddressRange> clients = {})
        : secret_(secret), clients_(std::move(clients)) {}

    // False: drop what it sends. A switch above is no client.
    [[nodiscard]] bool admits(const wire::Address& from) {
        const bool admitted = clients_.empty() || contain(clients_, from);
        strangers_ += admitted ? 0U : 1U;
        return admitted;
    }

    // nullopt: the address is proven. Otherwise the answer to send instead of any other.
    [[nodiscard]] std::optional<wire::Retry> handle_join(const wire::Join& join, const wire::Address& from, Time now);
    // Never 0.
    [[nodiscard]] std::uint64_t cookie_of(const wire::Address& address, Time now) const;
    [[nodiscard]] std::uint64_t retries() const { return retries_; }
    [[nodiscard]] std::uint64_t strangers() const { return strangers_; }

  private:
    Secret secret_;
    std::vector<AddressRange> clients_;
    std::uint64_t retries_ = 0;
    std::uint64_t strangers_ = 0;  // messages of hosts that are no clients
};

}  // namespace atp::control
