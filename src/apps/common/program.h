// SPDX-License-Identifier: Apache-2.0
// A program of subcommands: `atp` and `atp-lab`.
#pragma once

#include <span>
#include <string>

#include "apps/common/command.h"

namespace atp::apps {

struct ProgramText {
    std::string name;         // as it is typed: "atp"
    std::string description;  // the first line of --help
    std::string version;      // what --version prints
};

// Parses the command line, runs the subcommand and returns the exit status. Prints a usage error, an exception or a
// standard output that failed to standard error; these end with a status other than exit_passed.
[[nodiscard]] int run_program(const ProgramText& text, std::span<const Register> commands, int argc, char** argv);

}  // namespace atp::apps
