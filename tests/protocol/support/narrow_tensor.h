// SPDX-License-Identifier: Apache-2.0
// A tensor of float32 whose integers travel in any form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "numeric/narrow_lanes.h"
#include "protocol/tensor.h"

namespace atp::testing {

// Scale 1, which is also that of the job.
class NarrowTensor : public protocol::Tensor {
  public:
    NarrowTensor(std::uint8_t form, std::vector<float> values, const protocol::Spans& spans = {})
        : form_(form), spans_(spans), values_(std::move(values)), sums_(values_.size()), stored_(values_.size()) {}

    [[nodiscard]] std::uint64_t size() const override { return values_.size(); }
    [[nodiscard]] std::uint8_t form() const override { return form_; }
    [[nodiscard]] protocol::Spans spans() const override { return spans_; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        const std::size_t count = lanes.size() / protocol::element_bytes(form_);
        const auto quantise = form_ == ATP_DTYPE_INT8    ? numeric::int8_lanes().quantise
                              : form_ == ATP_DTYPE_INT16 ? numeric::int16_lanes().quantise
                                                         : numeric::quantise;
        return quantise(&values_[first], count, 1, lanes.data());
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        numeric::floats_to_wire(&values_[first], lanes.size() / ATP_LANE_BYTES, lanes.data());
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        const std::size_t count = lanes.size() / ATP_LANE_BYTES;
        numeric::floats_from_wire(lanes.data(), count, &sums_[first]);
        for (std::size_t at = 0; at < count; ++at) ++stored_[first + at];
    }
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override {
        const std::size_t count = lanes.size() / protocol::element_bytes(form_);
        std::vector<std::byte> wire(count * ATP_LANE_BYTES);
        const auto widen = form_ == ATP_DTYPE_INT8 ? numeric::int8_lanes().to_floats : numeric::int16_lanes().to_floats;
        widen(lanes.data(), count, 1, wire.data());
        store(first, wire);
    }

    [[nodiscard]] const std::vector<float>& sums() const { return sums_; }
    // How often a sum of each element was stored.
    [[nodiscard]] const std::vector<unsigned>& stored() const { return stored_; }

  private:
    std::uint8_t form_;
    protocol::Spans spans_;
    std::vector<float> values_;
    std::vector<float> sums_;
    std::vector<unsigned> stored_;
};

}  // namespace atp::testing
