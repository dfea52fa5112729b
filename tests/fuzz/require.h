// SPDX-License-Identifier: Apache-2.0
// The assertion of fuzz targets. On failure it prints the expectation and aborts. libFuzzer, the replay program and
// debuggers all report an abort.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace atp::fuzz {

inline void require(bool holds, const char* expectation) {
    if (holds) return;
    std::fprintf(stderr, "expectation failed: %s\n", expectation);
    std::abort();
}

}  // namespace atp::fuzz
