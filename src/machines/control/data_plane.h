// SPDX-License-Identifier: Apache-2.0
// The jobs that the control plane admits to a data plane in the path (a kernel program, a pipeline).
#pragma once

#include <cstdint>

namespace atp::control {

struct AdmittedJob {
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint8_t level = 0;  // level at which the switch aggregates for the job: the hop of its packets

    bool operator==(const AdmittedJob&) const = default;
};

}  // namespace atp::control
