// SPDX-License-Identifier: Apache-2.0
// Writes decide.json to stdout. What switches decide changes when a person runs this and commits what it wrote, and not
// otherwise: see decide_conformance_test.cc.
#include <cstdio>
#include <exception>

#include "decide_vectors.h"

int main(int argument_count, char** arguments) {
    if (argument_count != 1) {
        std::fprintf(stderr, "usage: %s > tests/conformance/decide.json\n", arguments[0]);
        return 2;
    }
    try {
        std::fputs(atp::conformance::decide_vectors_to_json(atp::conformance::decide_vectors()).c_str(), stdout);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
