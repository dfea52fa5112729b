// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "protocol/tensor.h"

namespace atp::tensor {

// Finds the largest exponent of a finite element of an operation on any rank, without any sum of its elements: 256
// plain lanes, of which each rank sets the one of its largest exponent to 1 (H51, docs/protocol.md#h51).
//
// Ownership: shares the tensors of the operation, which it reads before any element of them is sent.
// Calling order: that of protocol::Tensor. `found` is called once, by the store() that completes the sums.
// Threads: one. Failure: none.
class ExponentTensor final : public protocol::PlainTensor {
  public:
    using Tensors = std::vector<std::shared_ptr<const protocol::Tensor>>;
    // The exponent as the 8 bits of a float32; nullopt: all finite elements of all ranks are 0.
    using Found = std::function<void(std::optional<unsigned> exponent)>;

    ExponentTensor(Tensors tensors, Found found) : tensors_(std::move(tensors)), found_(std::move(found)) {}

    [[nodiscard]] std::uint64_t size() const override { return exponents; }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    static constexpr unsigned exponents = 256;

    Tensors tensors_;
    Found found_;
    mutable bool scanned_ = false;
    mutable std::optional<unsigned> own_{};  // of this rank; valid if `scanned_`
    std::optional<unsigned> largest_;        // of the sums that are stored
    unsigned stored_ = 0;
};

}  // namespace atp::tensor
