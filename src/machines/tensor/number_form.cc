// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_form.h"

namespace atp::tensor {

std::string_view to_string(Scaling scaling) { return scaling == Scaling::dynamic ? "dynamic" : "fixed"; }

std::string_view to_string(LaneType type) { return type == LaneType::int16 ? "int16" : "int32"; }

std::optional<Scaling> parse_scaling(std::string_view name) {
    for (const Scaling scaling : {Scaling::fixed, Scaling::dynamic}) {
        if (name == to_string(scaling)) return scaling;
    }
    return std::nullopt;
}

std::optional<LaneType> parse_lane_type(std::string_view name) {
    for (const LaneType type : {LaneType::int32, LaneType::int16}) {
        if (name == to_string(type)) return type;
    }
    return std::nullopt;
}

}  // namespace atp::tensor
