// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/atp/kernel_part.h"
#include "apps/atp/tenants_part.h"
#include "apps/common/command_text.h"
#include "apps/common/config_file.h"
#include "observe/log.h"
#include "switchd/node.h"

namespace atp::apps {

// What SIGHUP lets a running switch read again: the files of `--config` and of `--tenants`. The log says what changed.
// A file with an error changes nothing, and neither does a key that counts only at a start.
//
// Ownership: borrows the node, the switch in the path and the log. Threads: one. Failure: none; the log has the reason.
class SwitchReload {
  public:
    // `typed`: the words after `atp switch`. `add_flags`: further flags of the command; empty: none.
    SwitchReload(TenantsPart tenants, std::vector<std::string> typed, std::function<void(Command&)> add_flags);

    // `in_path`: nullptr: none.
    void reload(switchd::SwitchNode& node, KernelPart* in_path, observe::Log& log);

  private:
    void reload_settings(switchd::SwitchNode& node, observe::Log& log);

    TenantsPart tenants_;
    std::vector<std::string> typed_;
    std::function<void(Command&)> add_flags_;
    std::string path_;                                    // of the file with settings; empty: none
    std::map<std::string, ConfigFile::Setting> applied_;  // of it
};

}  // namespace atp::apps
