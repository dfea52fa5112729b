// SPDX-License-Identifier: Apache-2.0
// The ranks of a benchmark as processes of this machine.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "apps/common/signals.h"
#include "base/result.h"

namespace atp::apps {

// Starts one process a command, and waits for all of them. What the first one prints is returned; the others' output is
// dropped, their complaints are not.
// When one fails (with Reason::unsupported where its status, 77, says that this machine lacks something), or this
// process is told to stop, those that are left are ended, by their ids. Fails with the first that failed, or with
// Reason::closed when told to stop.
[[nodiscard]] Result<std::string> run_fleet(const std::vector<std::vector<std::string>>& commands,
                                            const StopSignals& signals, Time deadline);

// Of the file that this process was started from, or of a program beside it.
[[nodiscard]] std::string own_program();
[[nodiscard]] std::string program_beside(const std::string& name);

}  // namespace atp::apps
