// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter of float32: the fragments are dealt over the workers in turn.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "protocol/tensor.h"

namespace atp::testing {

class OwnedFloats final : public protocol::Tensor {
  public:
    struct Form {
        unsigned workers = 2;
        std::size_t fragment = 3;  // elements
        float scale = 1;
        bool one_owner = false;  // worker 0 owns all of them
        bool in_place = false;   // sums replace the input
        std::uint16_t purpose = 0;
    };

    static constexpr float untouched = -77;

    OwnedFloats(const Form& form, std::vector<float> input)
        : form_(form),
          input_(std::move(input)),
          output_(input_.size(), untouched),
          inner_(input_, form.in_place ? std::span(input_) : std::span(output_), form.scale) {}

    [[nodiscard]] std::uint64_t size() const override { return input_.size(); }
    [[nodiscard]] std::uint16_t purpose() const override { return form_.purpose; }
    [[nodiscard]] std::uint16_t owner_at(std::uint64_t element) const {
        return form_.one_owner ? std::uint16_t{0}
                               : static_cast<std::uint16_t>(element / form_.fragment % form_.workers);
    }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override { return {.owner = owner_at(first)}; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        return inner_.load_integers(first, lanes);
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        inner_.load_floats(first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override { inner_.store(first, lanes); }
    [[nodiscard]] const std::vector<float>& output() const { return form_.in_place ? input_ : output_; }

  private:
    Form form_;
    std::vector<float> input_;
    std::vector<float> output_;
    protocol::FloatTensor inner_;
};

}  // namespace atp::testing
