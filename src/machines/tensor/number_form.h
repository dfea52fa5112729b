// SPDX-License-Identifier: Apache-2.0
// The form in which the scaled numbers of a job travel.
#pragma once

#include <cstdint>

namespace atp::tensor {

// The scale at which the float32 numbers of a fragment travel.
enum class Scaling : std::uint8_t {
    fixed,    // the scale of the job
    dynamic,  // the scale that fits the last sum of the same fragment; without a last sum, the scale of the job
};

// The type of a scaled number in a packet.
enum class LaneType : std::uint8_t { int32, int16 };

struct NumberForm {
    double scale = 1e8;  // of the job; used for fragments without a history
    Scaling scaling = Scaling::fixed;
    LaneType lane_type = LaneType::int32;
};

}  // namespace atp::tensor
