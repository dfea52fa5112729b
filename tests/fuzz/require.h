// SPDX-License-Identifier: Apache-2.0
// What a fuzz target expects. On failure it prints the expectation and aborts, which libFuzzer, the replay of the
// corpus and a debugger all understand.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace atp::fuzz {

inline void require(bool holds, const char* expectation) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", expectation);
    std::abort();
}

}  // namespace atp::fuzz
