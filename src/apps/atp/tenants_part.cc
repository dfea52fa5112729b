// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/tenants_part.h"

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

void TenantsPart::reload(switchd::SwitchNode& node, observe::Log& log) {
    if (path_.empty()) {
        log.write(LogEvent::tenants_kept, {{"reason", "nothing to reload: the switch runs without --tenants"}});
        return;
    }
    auto tenants = tenants::read_tenants_file(path_);
    if (!tenants) {
        log.write(LogEvent::tenants_kept, {{"file", path_}, {"reason", to_string(tenants.error())}});
        return;
    }
    std::vector<std::string> changes = tenants::changes_between(*tenants_, **tenants);
    if (changes.empty()) changes.emplace_back("nothing differs");
    tenants_ = *std::move(tenants);
    node.set_tenants(tenants_);
    for (const std::string& change : changes) {
        log.write(LogEvent::tenants_changed, {{"file", path_}, {"reason", change}});
    }
}

}  // namespace atp::apps
