// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace atp {

// "atp 0.1.0": the version of the project, which stands in CMakeLists.txt alone.
[[nodiscard]] std::string software_name();
[[nodiscard]] const char* software_version();  // "0.1.0"

}  // namespace atp
