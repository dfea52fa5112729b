// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "protocol/tensor.h"
#include "tensor/exponent_source.h"

namespace atp::tensor {

// Finds the largest exponent of a finite element of a tensor on any rank, without any sum of the tensor: 256 plain
// lanes, of which each rank sets the one of its largest exponent to 1 (H51, docs/protocol.md#h51).
//
// Ownership: shares the source.
// Calling order: that of protocol::Tensor. `found` is called once, by the store() that completes the sums.
// Threads: one. Failure: none.
class ExponentTensor final : public protocol::PlainTensor {
  public:
    // The exponent as the 8 bits of a float32; nullopt: all finite elements of all ranks are 0.
    using Found = std::function<void(std::optional<unsigned> exponent)>;

    ExponentTensor(std::shared_ptr<ExponentSource> source, Found found)
        : source_(std::move(source)), found_(std::move(found)) {}

    [[nodiscard]] std::uint64_t size() const override { return exponents; }
    [[nodiscard]] bool ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const override {
        return source_->ready();
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    static constexpr unsigned exponents = 256;

    std::shared_ptr<ExponentSource> source_;
    Found found_;
    std::optional<unsigned> largest_;  // of the sums that are stored
    unsigned stored_ = 0;
};

}  // namespace atp::tensor
