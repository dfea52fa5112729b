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
// With dynamic scaling, a fragment without a last sum has about the job's scale. So does a fragment whose last sum is
// all zeros. Any other scale leaves room for the sum to grow before it overflows. In int32 lanes, the
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
    [[nodiscard]] std::uint8_t form() const override;
    [[nodiscard]] protocol::Spans spans() const override;
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const override;
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        tensor_->load_floats(first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override;

  private:
    [[nodiscard]] bool is_narrow() const { return form_.lane_type == LaneType::int16; }
    [[nodiscard]] bool is_too_fine(float largest, std::uint8_t scale) const;
    void settle(std::uint64_t first, float largest);

    std::unique_ptr<protocol::Tensor> tensor_;
    NumberForm form_;
    std::uint64_t fragment_;  // elements
    std::shared_ptr<ScaleHistory> history_;
    std::uint32_t round_;  // number of this operation in the history
};

}  // namespace atp::tensor
