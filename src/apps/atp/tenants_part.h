// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "apps/atp/kernel_part.h"
#include "base/result.h"
#include "control/tenants.h"
#include "observe/log.h"
#include "switchd/node.h"

namespace atp::apps {

// The file of `--tenants`, which SIGHUP lets the switch read again.
//
// Ownership: borrows the log, the node and the switch in the path.
// Calling order: open(), then reload() as often as the operator asks.
// Threads: one. Failure: open() returns the reason; reload() logs it, and the switch goes on with what it has.
class TenantsPart {
  public:
    // `path`: empty: the switch is open.
    [[nodiscard]] static Result<TenantsPart> open(const std::string& path);

    // nullptr: the switch is open.
    [[nodiscard]] const std::shared_ptr<const control::Tenants>& tenants() const { return tenants_; }
    // `in_path`: nullptr: none.
    void reload(switchd::SwitchNode& node, KernelPart* in_path, observe::Log& log);
    [[nodiscard]] bool has_file() const { return !path_.empty(); }

  private:
    explicit TenantsPart(std::string path) : path_(std::move(path)) {}

    std::string path_;
    std::shared_ptr<const control::Tenants> tenants_;
};

}  // namespace atp::apps
