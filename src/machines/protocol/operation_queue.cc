// SPDX-License-Identifier: Apache-2.0
#include "protocol/operation_queue.h"

#include "protocol/sequence.h"

namespace atp::protocol {

std::optional<std::uint64_t> OperationQueue::push(Tensor& tensor, const FragmentCut& cut, Time now, Time deadline,
                                                  bool as_int32) {
    const auto fragments = static_cast<std::uint32_t>(cut.fragments());
    assert(fragments != 0 && fragments == cut.fragments());
    if (end_ - first_ == capacity_) return std::nullopt;
    entries_[place(end_)] = Entry{.tensor = &tensor,
                                  .cut = cut,
                                  .plain = tensor.plain(),
                                  .form = as_int32 ? std::uint8_t{ATP_DTYPE_INT32} : tensor.form(),
                                  .widened = as_int32 && tensor.form() != ATP_DTYPE_INT32,
                                  .first_seq = end_seq_,
                                  .fragments = fragments,
                                  .missing = fragments,
                                  .submitted_at = now,
                                  .deadline = deadline};
    end_seq_ += fragments;
    deadline_ = std::min(deadline_, deadline);
    return end_++;
}

// The last operation that begins at or before `seq`.
std::uint64_t OperationQueue::find(std::uint32_t seq) const {
    assert(!empty());
    std::uint64_t low = first_;
    std::uint64_t high = end_;
    while (high - low > 1) {
        const std::uint64_t middle = low + (high - low) / 2;
        (before(seq, (*this)[middle].first_seq) ? high : low) = middle;
    }
    assert(seq - (*this)[low].first_seq < (*this)[low].fragments);
    return low;
}

Time OperationQueue::earliest_deadline() const {
    Time earliest = never;
    for (std::uint64_t number = first_; number != end_; ++number) {
        if ((*this)[number].missing != 0) earliest = std::min(earliest, (*this)[number].deadline);
    }
    return earliest;
}

}  // namespace atp::protocol
