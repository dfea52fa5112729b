// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "control/address_range.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::control {

// What a switch with tenants tells in a RETRY: with which key a JOIN shall come.
struct Introduction {
    std::uint64_t boot = 0;  // random for each start; 0: the switch is open
    std::string name{};      // of the switch
};

// Whether the sender of a JOIN or STATS receives at its address. Others can forge an address, but do not receive what
// is sent to it: such a question counts only with the cookie that a RETRY brought to its address. A RETRY is shorter
// than the question, and leaves no state. A cookie is a code of question, address and period, and is valid for one to
// two periods; that of a STATS joins nothing. To members with a key, each answer brings a new cookie, so a short period
// suffices: it must end before the switch forgets who left.
//
// Threads: none. Shards of one switch have equal secrets.
// Failure: none.
class Gatekeeper {
  public:
    static constexpr Duration cookie_period = std::chrono::minutes(1);
    // Of a switch with tenants. Two of them pass before it forgets who left.
    [[nodiscard]] static Duration short_period(Duration hold) {
        return std::max<Duration>(hold, std::chrono::seconds(2));
    }
    enum class Question : std::uint8_t { join = 1, stats = 2 };

    // `clients`: who may ask this switch; empty: any host.
    explicit Gatekeeper(const Secret& secret, std::vector<AddressRange> clients = {}, Introduction introduction = {},
                        Duration period = cookie_period)
        : secret_(secret), clients_(std::move(clients)), introduction_(std::move(introduction)), period_(period) {}

    // From now on.
    void set_clients(std::vector<AddressRange> clients) { clients_ = std::move(clients); }
    // False: drop what it sends. A switch above is no client.
    [[nodiscard]] bool admits(const wire::Address& from) {
        const bool admitted = clients_.empty() || contain(clients_, from);
        strangers_ += admitted ? 0U : 1U;
        return admitted;
    }

    // nullopt: the address is proven, or these bytes are no JOIN. Otherwise the answer to send instead of any other. It
    // reads fields at fixed offsets only, so that a JOIN from nowhere costs no more than a code.
    [[nodiscard]] std::optional<wire::Retry> handle_join(std::span<const std::byte> bytes, const wire::Address& from,
                                                         Time now);
    [[nodiscard]] std::optional<wire::Retry> handle_join(const wire::Join& join, const wire::Address& from, Time now);
    [[nodiscard]] std::optional<wire::Retry> handle_stats(const wire::Stats& stats, const wire::Address& from,
                                                          Time now);
    // Never 0.
    [[nodiscard]] std::uint64_t cookie_of(Question question, const wire::Address& address, Time now) const;
    [[nodiscard]] std::uint64_t retries() const { return retries_; }
    [[nodiscard]] std::uint64_t strangers() const { return strangers_; }

  private:
    // The cookie to send; nullopt: `cookie` is valid.
    [[nodiscard]] std::optional<std::uint64_t> missing(Question question, std::uint64_t cookie,
                                                       const wire::Address& from, Time now);

    Secret secret_;
    std::vector<AddressRange> clients_;
    Introduction introduction_;
    Duration period_;
    std::uint64_t retries_ = 0;
    std::uint64_t strangers_ = 0;  // messages of hosts that are no clients
};

}  // namespace atp::control
