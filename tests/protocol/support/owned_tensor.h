// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter or an all-gather of integers: the fragments are dealt over the workers in turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numeric/lanes32_switch.h"
#include "protocol/tensor.h"

namespace atp::testing {

class OwnedTensor final : public protocol::PlainTensor {
  public:
    struct Form {
        unsigned workers = 2;
        std::size_t fragment = 3;  // elements
        bool one_sender = false;
        std::uint16_t purpose = 0;
        unsigned first_owner = 0;
    };

    OwnedTensor(const Form& form, std::vector<std::int32_t> input)
        : form_(form), input_(std::move(input)), output_(input_.size(), untouched) {}

    static constexpr std::int32_t untouched = -77;

    [[nodiscard]] std::uint64_t size() const override { return input_.size(); }
    [[nodiscard]] std::uint16_t purpose() const override { return form_.purpose; }
    [[nodiscard]] std::uint16_t owner_at(std::uint64_t element) const {
        return static_cast<std::uint16_t>((element / form_.fragment + form_.first_owner) % form_.workers);
    }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override {
        return {.owner = owner_at(first), .one_sender = form_.one_sender};
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        numeric::lanes_store(lanes.data(), lanes.size() / ATP_LANE_BYTES, output_.data() + first);
    }
    [[nodiscard]] const std::vector<std::int32_t>& input() const { return input_; }
    [[nodiscard]] const std::vector<std::int32_t>& output() const { return output_; }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        numeric::lanes_emit(input_.data() + first, lanes.size() / ATP_LANE_BYTES, lanes.data());
    }

  private:
    Form form_;
    std::vector<std::int32_t> input_;
    std::vector<std::int32_t> output_;
};

}  // namespace atp::testing
