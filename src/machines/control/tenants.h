// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/address_range.h"
#include "crypto/tenant_key.h"

namespace atp::control {

// A team that shares a switch, and what it may use of it. An empty limit is the one of the switch.
struct Tenant {
    std::string name{};
    // With which its members join at this switch: two while one replaces the other.
    std::vector<crypto::TenantKey> keys{};
    std::vector<AddressRange> sources{};  // of its members; empty: any host
    std::vector<AddressRange> servers{};  // that its jobs may name as server or root; empty: those of the switch
    std::vector<AddressRange> groups{};   // to which its jobs may have results sent; empty: those of the switch
    std::optional<std::uint32_t> jobs{};
    std::optional<std::uint32_t> channels{};
    std::optional<std::uint64_t> server_bytes{};
    std::optional<std::uint32_t> aggregators{};
    std::uint32_t weight = 1;  // against other tenants, for memory and links
};

// What the code of a JOIN proves about its sender. Without a tenant: nothing, since the switch is open.
struct Proof {
    const Tenant* tenant = nullptr;  // whose job it is
    const Tenant* sender = nullptr;  // whose key it is; nullptr: the tenant's
    std::uint32_t key_id = 0;
};

// The tenants of a switch. Without any, the switch is open: it asks nobody for a key.
class Tenants {
  public:
    struct Found {
        const Tenant* tenant;
        const crypto::TenantKey* key;
    };

    Tenants() = default;
    // No key id stands twice.
    explicit Tenants(std::vector<Tenant> tenants) : tenants_(std::move(tenants)) {}

    [[nodiscard]] bool is_open() const { return tenants_.empty(); }
    [[nodiscard]] const std::vector<Tenant>& all() const { return tenants_; }
    // Whose key it is, until this object ends. nullopt: nobody's.
    [[nodiscard]] std::optional<Found> find(std::uint32_t key_id) const {
        for (const Tenant& tenant : tenants_) {
            for (const crypto::TenantKey& key : tenant.keys) {
                if (key.id == key_id) return Found{&tenant, &key};
            }
        }
        return std::nullopt;
    }

  private:
    std::vector<Tenant> tenants_;
};

}  // namespace atp::control
