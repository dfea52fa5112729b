// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/tenants.h"

namespace atp::tenants {

// The tenants of a file, with their keys (docs/operate/secure.md#tenants). Paths of key files are relative to the
// folder of the file. Failure: names the line at fault; or the error of a system call.
[[nodiscard]] Result<std::shared_ptr<const control::Tenants>> read_tenants_file(const std::string& path);

// What differs after the file was read again, for the log: one text for each tenant. Empty: nothing.
[[nodiscard]] std::vector<std::string> changes_between(const control::Tenants& before, const control::Tenants& after);

}  // namespace atp::tenants
