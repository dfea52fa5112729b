// SPDX-License-Identifier: Apache-2.0
// Runs a program of subcommands: `atp` or `atp-lab`.
#pragma once

#include <span>
#include <string>

#include "apps/common/command.h"

namespace atp::apps {

struct ProgramText {
    std::string name;         // as typed: "atp"
    std::string description;  // the first line of --help
    std::string version;      // the text that --version prints
};

// Parses the command line, runs the subcommand and returns the exit status. If there is a usage error, an exception or
// a failure of standard output, prints it to standard error and returns a status other than exit_passed.
[[nodiscard]] int run_program(const ProgramText& text, std::span<const Register> commands, int argc, char** argv);

}  // namespace atp::apps
