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

// Which program a command is part of. That of the laboratory has flags for experiments besides: SwitchML, emulated
// links and links without congestion control.
enum class Edition : bool { product, laboratory };

// Adds one subcommand to the program. The returned function runs it, after its flags were read, if it was asked for.
using Register = std::function<int()> (*)(CLI::App& program);

}  // namespace atp::apps
