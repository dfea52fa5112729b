// SPDX-License-Identifier: Apache-2.0
#include "tensor/adaptive_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "numeric/lanes16.h"
#include "numeric/lanes32_worker.h"

namespace atp::tensor {
namespace {

// Elements converted in one step, on the stack.
constexpr std::size_t block = 512;
using Floats = std::array<float, block>;
using Lanes = std::array<std::byte, block * ATP_LANE_BYTES>;

// Limits on a scale, by the width of the integers.
struct Width {
    int bits_of_sum;    // bits of the largest integer of the last sum at this scale; the other bits are room to grow
    float least;        // least integer for the largest number of a fragment; a smaller one loses too many digits
    std::size_t bytes;  // of an element in a packet
};
// float32 has 24 bits: the largest number keeps all of them, and sums may grow 64-fold from one operation to the next.
constexpr Width wide{.bits_of_sum = 25, .least = 0x1p11F, .bytes = ATP_LANE_BYTES};
constexpr Width narrow{.bits_of_sum = 12, .least = 0x1p3F, .bytes = numeric::int16_lane_bytes};

// NaN counts as larger than any number.
float larger(float a, float b) { return b <= a || std::isnan(a) ? a : b; }

const Width& width_of(bool is_narrow) { return is_narrow ? narrow : wide; }

}  // namespace

FittedTensor::FittedTensor(std::unique_ptr<protocol::Tensor> tensor, const NumberForm& form,
                           std::uint64_t elements_of_fragment, std::shared_ptr<ScaleHistory> history)
    : tensor_(std::move(tensor)),
      form_(form),
      fragment_(elements_of_fragment),
      history_(std::move(history)),
      round_(history_ == nullptr ? 0 : history_->begin()) {}

std::uint8_t FittedTensor::form() const { return is_narrow() ? ATP_DTYPE_INT16 : ATP_DTYPE_INT32; }

protocol::Spans FittedTensor::spans() const {
    return history_ == nullptr ? protocol::Spans{} : protocol::Spans{.length = fragment_};
}

bool FittedTensor::ready(std::uint64_t first, std::uint64_t count) const {
    return tensor_->ready(first, count) && (history_ == nullptr || history_->settled(first, round_));
}

std::uint8_t FittedTensor::scale(std::uint64_t first) const {
    const std::uint8_t scale = history_ == nullptr ? protocol::scale_of_job : history_->scale(first);
    const bool unknown = form_.scaling == Scaling::dynamic && scale == protocol::scale_of_job;
    // At the scale of the job, the server sums each element that has an integer as one, however small it is.
    return unknown ? protocol::scale_byte(std::ilogb(form_.scale)) : scale;
}

// With fixed scaling, small numbers are rounded to multiples of the job's scale, and none is too small.
bool FittedTensor::is_too_fine(float largest, std::uint8_t scale) const {
    if (form_.scaling == Scaling::fixed || largest == 0) return false;
    return double{largest} * protocol::scale_from(scale, form_.scale) < width_of(is_narrow()).least;
}

bool FittedTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    const std::size_t bytes = width_of(is_narrow()).bytes;
    const std::size_t elements = lanes.size() / bytes;
    const std::uint8_t own = this->scale(first);
    const auto scale = static_cast<float>(protocol::scale_from(own, form_.scale));
    const auto quantise = is_narrow() ? numeric::quantise_int16 : numeric::quantise;
    Lanes wire;
    Floats values;
    float largest = 0;
    for (std::size_t at = 0; at < elements; at += block) {
        const std::size_t count = std::min(block, elements - at);
        tensor_->load_floats(first + at, std::span(wire).first(count * ATP_LANE_BYTES));
        numeric::floats_from_wire(wire.data(), count, values.data());
        if (!quantise(values.data(), count, scale, lanes.data() + at * bytes)) return false;
        largest = larger(largest, numeric::largest_magnitude(values.data(), count));
    }
    return !is_too_fine(largest, own);
}

void FittedTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    const std::size_t elements = lanes.size() / ATP_LANE_BYTES;
    tensor_->store(first, lanes);
    if (history_ == nullptr) return;
    Floats sums;
    float largest = 0;
    for (std::size_t at = 0; at < elements; at += block) {
        const std::size_t count = std::min(block, elements - at);
        numeric::floats_from_wire(lanes.data() + at * ATP_LANE_BYTES, count, sums.data());
        largest = larger(largest, numeric::largest_magnitude(sums.data(), count));
    }
    settle(first, largest);
}

void FittedTensor::store_narrow(std::uint64_t first, std::span<const std::byte> lanes) {
    const std::size_t elements = lanes.size() / numeric::int16_lane_bytes;
    const double inverse = 1.0 / protocol::scale_from(scale(first), form_.scale);
    Lanes wire;
    Floats sums;
    float largest = 0;
    for (std::size_t at = 0; at < elements; at += block) {
        const std::size_t count = std::min(block, elements - at);
        numeric::int16_to_floats(lanes.data() + at * numeric::int16_lane_bytes, count, inverse, wire.data());
        tensor_->store(first + at, std::span(wire).first(count * ATP_LANE_BYTES));
        numeric::floats_from_wire(wire.data(), count, sums.data());
        largest = larger(largest, numeric::largest_magnitude(sums.data(), count));
    }
    if (history_ != nullptr) settle(first, largest);
}

// A sum that is not finite does not predict the next one, so the scale stays.
void FittedTensor::settle(std::uint64_t first, float largest) {
    std::uint8_t scale = history_->scale(first);
    if (largest == 0) {
        scale = protocol::scale_of_job;
    } else if (std::isfinite(largest)) {
        const Width& width = width_of(is_narrow());
        scale = protocol::scale_byte(width.bits_of_sum - (std::ilogb(largest) + 1));
    }
    history_->settle(first, scale);
}

}  // namespace atp::tensor
