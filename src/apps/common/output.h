// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace atp::apps {

// Flushes standard output, so that its reader sees everything printed so far. False: output was lost, so the command
// should end; run_program() reports the error.
[[nodiscard]] inline bool show_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace atp::apps
