// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of a benchmark as processes of this host.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "apps/common/interruption.h"
#include "base/result.h"
#include "base/time.h"

namespace atp::apps {

// Starts one process per command, and waits for all of them. Returns the standard output of the first process. Drops
// the standard output of the other processes. Standard error of all processes is kept. If a process fails, or this
// process receives a stop signal, the call ends the remaining processes, by their ids. The error is that of the first
// process that failed: Reason::unsupported for status 77, which means that this host lacks something. After a stop
// signal, interruption.came() is true.
[[nodiscard]] Result<std::string> run_fleet(const std::vector<std::vector<std::string>>& commands,
                                            const Interruption& interruption, Time deadline);
// The same for one program that removes what it made when SIGTERM ends it: it has some seconds for that.
[[nodiscard]] Result<std::string> run_orderly(const std::vector<std::string>& command, const Interruption& interruption,
                                              Time deadline);

// Path of this program, and of a program in the same folder.
[[nodiscard]] std::string own_program();
[[nodiscard]] std::string program_beside(const std::string& name);

}  // namespace atp::apps
