// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "control/owner.h"
#include "control/tenants.h"

namespace atp::control {

// What of a table, or of memory, is each tenant's own, whatever the others hold: its limit; or if the limits of all
// together exceed the whole, its part of that. Who has no limit has nothing of its own, like a host at an open switch.
class Guarantees {
  public:
    Guarantees() = default;
    // `tenants`: nullptr: none. `limit`: of a tenant; nullopt: none.
    template <class Limit>
    Guarantees(const Tenants* tenants, std::uint64_t whole, Limit limit) {
        if (tenants == nullptr) return;
        std::uint64_t sum = 0;
        const auto limit_of = [&](const Tenant& tenant) {
            return std::min<std::uint64_t>(limit(tenant).value_or(0), whole);
        };
        for (const Tenant& tenant : tenants->all()) sum += limit_of(tenant);
        for (const Tenant& tenant : tenants->all()) {
            const std::uint64_t own = limit_of(tenant);
            if (own != 0) own_[tenant.name] = sum <= whole ? own : part_of(whole, own, sum);
        }
    }

    [[nodiscard]] std::uint64_t of(const Owner& owner) const {
        const auto found = own_.find(owner.tenant);
        return found == own_.end() ? 0 : found->second;
    }
    // What tenants other than `owner` may still take of their own, so nobody else may. `use_of`: what an owner holds.
    template <class UseOf>
    [[nodiscard]] std::uint64_t left_to_others(const Owner& owner, UseOf&& use_of) const {
        std::uint64_t left = 0;
        for (const auto& [name, own] : own_) {
            if (name == owner.tenant) continue;
            const std::uint64_t used = use_of(Owner{.tenant = name});
            left += own - std::min(own, used);
        }
        return left;
    }

  private:
    [[nodiscard]] static std::uint64_t part_of(std::uint64_t whole, std::uint64_t own, std::uint64_t sum) {
        const long double part = static_cast<long double>(own) / static_cast<long double>(sum);
        return static_cast<std::uint64_t>(static_cast<long double>(whole) * part);
    }

    std::map<std::string, std::uint64_t, std::less<>> own_;  // above 0
};

}  // namespace atp::control
