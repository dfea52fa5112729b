// SPDX-License-Identifier: Apache-2.0
// What a data plane in the path (a kernel program, a pipeline) is told of jobs.
#pragma once

#include <cstdint>

namespace atp::control {

struct AdmittedJob {
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint8_t level = 0;  // the hop that the switch serves for it

    bool operator==(const AdmittedJob&) const = default;
};

}  // namespace atp::control
