// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "protocol/tensor.h"
#include "tensor/number_form.h"
#include "tensor/scale_history.h"

namespace atp::tensor {

// A tensor of floats with a scale for each fragment (dynamic scaling), with int16 lanes, or with both.
//
// With dynamic scaling, a fragment without a last sum travels as int32 at the job's scale. So does a fragment whose
// last sum is all zeros. Any other scale leaves room for the sum to grow before it overflows. In int32 lanes, the
// largest number keeps all bits of its float32. If a fragment has a number that is too large for its scale, or only
// numbers that are too small, the fragment travels as floats. A bad scale therefore costs time and no precision.
//
// Ownership: owns the wrapped tensor, which must not be plain; shares the history.
// Calling order: that of protocol::Tensor. Construct the tensors of one history in the order of their operations.
// Threads: as the wrapped tensor. Failure: none.
class FittedTensor final : public protocol::Tensor {
  public:
    // `history` is nullptr if scaling is fixed, or if the communicator has reached its limit of histories.
    FittedTensor(std::unique_ptr<protocol::Tensor> tensor, const NumberForm& form, std::uint64_t elements_of_fragment,
                 std::shared_ptr<ScaleHistory> history);

    [[nodiscard]] std::uint64_t size() const override { return tensor_->size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    [[nodiscard]] protocol::Format format(std::uint64_t first, std::uint64_t count) const override;
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        tensor_->load_floats(first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void store_int16(std::uint64_t first, std::span<const std::byte> lanes) override;

  private:
    [[nodiscard]] std::uint64_t count_at(std::uint64_t first) const;
    [[nodiscard]] bool may_be_short(std::uint64_t count) const;
    [[nodiscard]] bool is_too_fine(float largest, const protocol::Format& format) const;
    void settle(std::uint64_t first, float largest);

    std::unique_ptr<protocol::Tensor> tensor_;
    NumberForm form_;
    std::uint64_t fragment_;  // elements
    std::shared_ptr<ScaleHistory> history_;
    std::uint32_t round_;  // number of this operation in the history
};

}  // namespace atp::tensor
