// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/version.h"

namespace atp::apps {

// The commit of the sources, as `git describe --always` names it; empty: built from sources without git.
// cmake/write_revision.cmake writes the definition. Programs link it, because a module that did would compile again
// after each commit.
[[nodiscard]] const char* revision();

// The text of --version: "atp 0.1.0 (66bf5bfe)".
[[nodiscard]] inline std::string version_text() {
    const std::string commit = revision();
    return software_name() + (commit.empty() ? "" : " (" + commit + ")");
}

}  // namespace atp::apps
