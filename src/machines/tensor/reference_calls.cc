// SPDX-License-Identifier: Apache-2.0
#include "tensor/reference_calls.h"

#include <algorithm>

namespace atp::tensor {

std::optional<std::uint64_t> ReferenceCalls::add(const OperationKind& kind) {
    const std::uint64_t oldest = calls_ - std::min<std::uint64_t>(calls_, most_calls - 1);
    std::optional<std::uint64_t> best;
    std::uint32_t most = 0;
    // A call and the new one agree if their kinds do and, before them, as far as their predecessors did. The count of
    // a predecessor is read before it changes, so the latest call comes first.
    for (std::uint64_t number = calls_; number-- > oldest;) {
        PastCall& earlier = call(number);
        if (earlier.kind != kind) {
            earlier.equal = 0;
            continue;
        }
        const std::uint32_t before = number == oldest ? 0 : call(number - 1).equal;
        earlier.equal = std::min(before + 1, most_equal);
        if (earlier.equal <= most) continue;
        most = earlier.equal;
        best = number;
    }
    call(calls_) = {.kind = kind};
    ++calls_;
    return best;
}

}  // namespace atp::tensor
