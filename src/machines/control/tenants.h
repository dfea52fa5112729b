// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
    std::uint32_t weight = 1;              // against other tenants, for memory and links
    bool fabric = false;                   // its members are switches, which join for tenants that they name
    std::vector<std::uint32_t> revoked{};  // ids of keys whose sessions end
};

// The text of a REFUSED to a member without a right key, or with the key of a tenant whose job it is not: nobody learns
// which keys and jobs there are.
inline constexpr std::string_view unknown_text = "no such job or key";

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

        // Only switches join for the tenants of other keys.
        [[nodiscard]] bool may_join_for(std::uint32_t charged) const { return charged == key->id || tenant->fabric; }
    };

    Tenants() = default;
    // No key id stands twice.
    explicit Tenants(std::vector<Tenant> tenants) : tenants_(std::move(tenants)) {}

    // In a process that has the key of one tenant.
    [[nodiscard]] static std::shared_ptr<const Tenants> of_one(const crypto::TenantKey& key) {
        Tenant tenant{.name = key.tenant};
        tenant.keys.push_back(key);
        return std::make_shared<const Tenants>(std::vector{std::move(tenant)});
    }

    [[nodiscard]] bool is_open() const { return tenants_.empty(); }
    [[nodiscard]] const std::vector<Tenant>& all() const { return tenants_; }
    // At which all keys join; empty: they are the tenants' own, as in a process of a rank.
    [[nodiscard]] std::string switch_name() const {
        for (const Tenant& tenant : tenants_) {
            if (!tenant.keys.empty()) return tenant.keys.front().at_switch;
        }
        return {};
    }
    // nullptr: no tenant has this name.
    [[nodiscard]] const Tenant* named(std::string_view name) const {
        const auto found = std::ranges::find(tenants_, name, &Tenant::name);
        return found == tenants_.end() ? nullptr : &*found;
    }
    // Its sessions end, if they have not yet.
    [[nodiscard]] bool is_revoked(std::uint32_t key_id) const {
        return std::ranges::any_of(tenants_, [&](const Tenant& tenant) {
            return std::ranges::find(tenant.revoked, key_id) != tenant.revoked.end();
        });
    }
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

// nullptr: a switch without a file of tenants.
[[nodiscard]] inline bool is_open(const Tenants* tenants) { return tenants == nullptr || tenants->is_open(); }

}  // namespace atp::control
