// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace atp {

// Returns "atp 0.1.0". The version of the project is defined in CMakeLists.txt only.
[[nodiscard]] std::string software_name();
[[nodiscard]] const char* software_version();  // "0.1.0"

}  // namespace atp
