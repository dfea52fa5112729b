// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "protocol/tensor.h"

namespace atp::tensor {

// Finds the largest exponent of a finite element of a tensor on any rank, before any sum of the tensor is known: 256
// plain lanes, of which each rank sets the one of its largest exponent to 1 (H51, docs/protocol.md#h51).
//
// Ownership: shares the tensor that it reads.
// Calling order: that of protocol::Tensor. `found` is called once, by the store() that completes the sums.
// Threads: one. Failure: none.
class ExponentTensor final : public protocol::PlainTensor {
  public:
    // The exponent as the 8 bits of a float32; nullopt: all finite elements of all ranks are 0.
    using Found = std::function<void(std::optional<unsigned> exponent)>;

    ExponentTensor(std::shared_ptr<const protocol::Tensor> whole, Found found)
        : whole_(std::move(whole)), found_(std::move(found)) {}

    [[nodiscard]] std::uint64_t size() const override { return exponents; }
    [[nodiscard]] bool ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const override {
        return whole_->ready(0, whole_->size());
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    static constexpr unsigned exponents = 256;

    [[nodiscard]] std::optional<unsigned> own_exponent() const;

    std::shared_ptr<const protocol::Tensor> whole_;
    Found found_;
    mutable bool scanned_ = false;
    mutable std::optional<unsigned> own_;  // valid if `scanned_`
    std::optional<unsigned> largest_;      // of the sums that are stored
    unsigned stored_ = 0;
};

}  // namespace atp::tensor
