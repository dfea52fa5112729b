// SPDX-License-Identifier: Apache-2.0
#include "protocol/home_sum.h"

#include "numeric/lanes32_sums.h"
#include "protocol/lane_sums.h"

namespace atp::protocol {

bool HomeSum::has_integers(const Tensor& tensor, const FragmentCut::Range& range) {
    return tensor.load_integers(range.first, std::span(own_).first(range.count * element_bytes(tensor.form())));
}

void HomeSum::store(Tensor& tensor, const FragmentCut::Range& range, const wire::Packet& ack, double inverse_scale) {
    (void)has_integers(tensor, range);
    assignment_of(tensor.form())(own_.data(), range.count, sums_.data());
    addition_of(atp_lanes_type(&ack.header))(ack.lanes.data(), range.count, sums_.data());
    const std::span<std::byte> lanes = std::span(own_).first(range.count * ATP_LANE_BYTES);
    if (tensor.plain()) {
        numeric::sums_to_integers(sums_.data(), range.count, lanes.data());
    } else {
        numeric::sums_to_floats(sums_.data(), range.count, inverse_scale, lanes.data());
    }
    tensor.store(range.first, lanes);
}

}  // namespace atp::protocol
