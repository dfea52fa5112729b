// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace atp {

std::string software_name() { return "atp " ATP_SOFTWARE_VERSION; }

const char* software_version() { return ATP_SOFTWARE_VERSION; }

}  // namespace atp
