// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace atp::apps {

// The program and its commands as one JSON object, from which tools/write_cli writes man pages, completions and
// docs/reference/cli.md. Every subcommand must be a Command.
[[nodiscard]] std::string description_of(const CLI::App& program);

}  // namespace atp::apps
