// SPDX-License-Identifier: Apache-2.0
// Interface of a subcommand to its program.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace atp::apps {

class Command;

// Exit status of the process.
enum ExitStatus : int {
    exit_passed = 0,
    exit_failed = 1,  // the command ran, and a check failed
    exit_misused = 2,
    exit_interrupted = 130,
};

// Adds one subcommand, a Command, to the program. The returned function runs it after its flags were read, if it was
// requested.
using Register = std::function<int()> (*)(CLI::App& program);

}  // namespace atp::apps
