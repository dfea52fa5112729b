// SPDX-License-Identifier: Apache-2.0
// How a subcommand of `atp` enters the program.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace atp::apps {

// What the process returns.
enum ExitStatus : int {
    exit_passed = 0,
    exit_failed = 1,  // it ran, and what it checked does not hold
    exit_misused = 2,
    exit_interrupted = 130,
};

// Adds one subcommand to the program. The returned function runs it, after its flags were read, if it was asked for.
using Register = std::function<int()> (*)(CLI::App& program);

}  // namespace atp::apps
