// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/fragment_cut.h"
#include "protocol/tensor.h"
#include "wire/packet.h"

namespace atp::protocol {

// The sum of a fragment whose owner stays at home: the integers of all others, which an ACK brings, and those of the
// owner. The bits are those of a sum to which all workers sent: the same integers are added in 64 bits, and converted
// by the same formula.
//
// Ownership: owns its memory, allocated at construction. Borrows the tensor for a call.
// Calling order: any. Threads: none.
// Failure: none. The tensor must have integers, as has_integers() says.
class HomeSum {
  public:
    // `elements`: of the longest fragment.
    explicit HomeSum(std::size_t elements) : own_(elements * ATP_LANE_BYTES), sums_(elements) {}

    [[nodiscard]] bool has_integers(const Tensor& tensor, const FragmentCut::Range& range);
    // Adds the tensor's integers to those of the ACK, which may be wider, and stores the sum in the tensor.
    // `inverse_scale`: of the fragment; a plain tensor ignores it.
    void store(Tensor& tensor, const FragmentCut::Range& range, const wire::Packet& ack, double inverse_scale);

  private:
    std::vector<std::byte> own_;  // as long as floats
    std::vector<std::int64_t> sums_;
};

}  // namespace atp::protocol
