// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace atp::apps {

// What was printed so far reaches whoever reads it now. False: something of it was lost, so there is no use in going
// on; main() says so at the end.
[[nodiscard]] inline bool show_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace atp::apps
