// SPDX-License-Identifier: Apache-2.0
// The keys of a scenario in which each job is a tenant: its ranks prove their key to each switch, and switches to their
// parents one of their own.
//
// Ownership: values, or shared with the machines that read them.
// Calling order: any.
// Threads: any.
// Failure: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "control/tenants.h"
#include "crypto/tenant_key.h"
#include "sim/scenario.h"

namespace atp::sim {

// nullptr: the scenario has no keys.
[[nodiscard]] std::shared_ptr<const crypto::TenantKey> key_of_job(const Scenario& scenario, unsigned job);
// With which switches join others.
[[nodiscard]] std::shared_ptr<const crypto::TenantKey> key_of_switches(const Scenario& scenario);
// What the file of the switch with this name has.
[[nodiscard]] std::shared_ptr<const control::Tenants> tenants_of(const Scenario& scenario, const std::string& name);

}  // namespace atp::sim
