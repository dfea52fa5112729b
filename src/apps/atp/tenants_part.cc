// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/tenants_part.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tenants/tenants_file.h"

namespace atp::apps {

using observe::LogEvent;

Result<TenantsPart> TenantsPart::open(const std::string& path) {
    TenantsPart part(path);
    if (path.empty()) return part;
    auto tenants = tenants::read_tenants_file(path);
    if (!tenants) return tl::unexpected(tenants.error());
    part.tenants_ = *std::move(tenants);
    return part;
}

void TenantsPart::reload(switchd::SwitchNode& node, KernelPart* in_path, observe::Log& log) {
    auto tenants = tenants::read_tenants_file(path_);
    if (!tenants) {
        log.write(LogEvent::tenants_kept, {{"file", path_}, {"reason", to_string(tenants.error())}});
        return;
    }
    // Members know the switch by this name.
    if (const std::string name = (*tenants)->switch_name(); name != tenants_->switch_name()) {
        log.write(LogEvent::tenants_kept,
                  {{"file", path_},
                   {"reason", fmt::format("its keys are for switch {}, and this one is {}: restart it to rename it",
                                          name, tenants_->switch_name())}});
        return;
    }
    std::vector<std::string> changes = tenants::changes_between(*tenants_, **tenants);
    if (changes.empty()) changes.emplace_back("nothing differs");
    tenants_ = *std::move(tenants);
    node.set_tenants(tenants_);
    if (in_path != nullptr) in_path->set_tenants(tenants_);
    for (const std::string& change : changes) {
        log.write(LogEvent::tenants_changed, {{"file", path_}, {"reason", change}});
    }
}

}  // namespace atp::apps
