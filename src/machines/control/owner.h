// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>

#include "control/host_key.h"
#include "control/tenants.h"
#include "wire/address.h"

namespace atp::control {

// Whom the places of a job, and the memory of its servers, count for: its tenant, or on an open switch the host that
// joined first.
struct Owner {
    std::string tenant{};  // empty: the switch is open
    HostKey host{};        // of no family: a tenant has many hosts

    // `tenant`: nullptr: the switch is open.
    [[nodiscard]] static Owner of(const Tenant* tenant, const wire::Address& from) {
        if (tenant != nullptr) return {.tenant = tenant->name};
        return {.host = HostKey::of(from)};
    }
    auto operator<=>(const Owner&) const = default;
};

}  // namespace atp::control
