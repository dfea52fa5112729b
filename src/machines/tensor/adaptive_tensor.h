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

// A tensor of floats whose integers fit its numbers: at a scale for each fragment, in lanes of 16 bits, or both.
//
// With dynamic scaling a fragment without a history, or whose last sum was all zeros, travels as int32 at the job's
// scale. Any other leaves room for its sum to grow before it overflows, and keeps all bits of float32 for the largest
// number where lanes have 32. What is too large or too small for its scale travels as floats: a scale that is wrong
// costs time, never digits.
// Owns the tensor that it stands for, which is not plain; shares the history. Threads: as that tensor.
class FittedTensor final : public protocol::Tensor {
  public:
    // Without a history where scaling is fixed, or not all histories have room.
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
    void store_shorts(std::uint64_t first, std::span<const std::byte> lanes) override;

  private:
    [[nodiscard]] std::uint64_t count_at(std::uint64_t first) const;
    [[nodiscard]] bool may_be_short(std::uint64_t count) const;
    [[nodiscard]] bool is_too_fine(float largest, const protocol::Format& format) const;
    void settle(std::uint64_t first, float largest);

    std::unique_ptr<protocol::Tensor> tensor_;
    NumberForm form_;
    std::uint64_t fragment_;
    std::shared_ptr<ScaleHistory> history_;
    std::uint32_t round_;
};

}  // namespace atp::tensor
