// SPDX-License-Identifier: Apache-2.0
#include "sim/tenant_keys.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "random/random.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t key_stream = 0x6b65;

// Numbers below the number of jobs are those of jobs, and the next one is that of all switches.
crypto::TenantKey key_of(const Scenario& scenario, unsigned number) {
    const bool is_job = number < scenario.jobs;
    Random random(scenario.seed, key_stream + number);
    std::array<std::byte, crypto::SecretKey::size> bytes{};
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    return {.id = number + 1,
            .tenant = is_job ? fmt::format("team{}", number) : "switches",
            .key = crypto::SecretKey(bytes)};
}

std::shared_ptr<const crypto::TenantKey> shared_key(const Scenario& scenario, unsigned number) {
    return scenario.keys ? std::make_shared<const crypto::TenantKey>(key_of(scenario, number)) : nullptr;
}

}  // namespace

std::shared_ptr<const crypto::TenantKey> key_of_job(const Scenario& scenario, unsigned job) {
    return shared_key(scenario, job);
}

std::shared_ptr<const crypto::TenantKey> key_of_switches(const Scenario& scenario) {
    return shared_key(scenario, scenario.jobs);
}

std::shared_ptr<const control::Tenants> tenants_of(const Scenario& scenario, const std::string& name) {
    if (!scenario.keys) return nullptr;
    std::vector<control::Tenant> tenants;
    for (unsigned number = 0; number <= scenario.jobs; ++number) {
        const crypto::TenantKey key = key_of(scenario, number);
        control::Tenant tenant{.name = key.tenant, .fabric = number == scenario.jobs};
        tenant.keys.push_back(crypto::key_for_switch(key, name));
        tenants.push_back(std::move(tenant));
    }
    return std::make_shared<const control::Tenants>(std::move(tenants));
}

}  // namespace atp::sim
