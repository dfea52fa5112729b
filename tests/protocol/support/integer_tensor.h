// SPDX-License-Identifier: Apache-2.0
// A minimal tensor of unscaled integers: int32 input, int32 sums.
#pragma once

#include <cstdint>
#include <span>

#include "numeric/lanes32_switch.h"
#include "protocol/tensor.h"

namespace atp::testing {

class IntegerTensor final : public protocol::PlainTensor {
  public:
    IntegerTensor(std::span<const std::int32_t> input, std::span<std::int32_t> output, std::uint16_t purpose = 0)
        : input_(input), output_(output), purpose_(purpose) {}

    [[nodiscard]] std::uint64_t size() const override { return input_.size(); }
    [[nodiscard]] std::uint16_t purpose() const override { return purpose_; }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        numeric::lanes_store(lanes.data(), lanes.size() / ATP_LANE_BYTES, output_.data() + first);
    }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        numeric::lanes_emit(input_.data() + first, lanes.size() / ATP_LANE_BYTES, lanes.data());
    }

  private:
    std::span<const std::int32_t> input_;
    std::span<std::int32_t> output_;
    std::uint16_t purpose_;
};

}  // namespace atp::testing
