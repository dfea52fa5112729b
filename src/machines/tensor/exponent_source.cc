// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_source.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "numeric/lanes32_worker.h"
#include "tensor/span_scales.h"
#include "tensor/values.h"

namespace atp::tensor {
namespace {

constexpr unsigned mantissa_bits = 23;

std::optional<unsigned> exponent_of(std::uint32_t magnitude) {
    if (magnitude == 0) return std::nullopt;
    return magnitude >> mantissa_bits;
}

std::uint32_t largest_finite(std::span<const float> values) {
    const std::uint32_t of_all = magnitude_bits(numeric::largest_magnitude(values.data(), values.size()));
    if (of_all < infinity_bits) return of_all;
    std::uint32_t largest = 0;
    for (const float value : values) {
        const std::uint32_t bits = magnitude_bits(value);
        largest = std::max(largest, bits < infinity_bits ? bits : 0U);
    }
    return largest;
}

// As magnitude_bits().
std::uint32_t largest_finite(const protocol::Tensor& tensor, std::uint64_t first, std::uint64_t count) {
    std::array<float, values_max> values;
    std::uint32_t largest = 0;
    while (count != 0) {
        const std::size_t some = std::min<std::uint64_t>(values_max, count);
        load_values(tensor, first, std::span(values).first(some));
        largest = std::max(largest, largest_finite(std::span(values).first(some)));
        first += some;
        count -= some;
    }
    return largest;
}

std::uint64_t fragment_of(const protocol::Tensor& tensor) {
    const std::uint64_t length = tensor.spans().length;
    return length == 0 ? tensor.size() : length;
}

}  // namespace

std::optional<unsigned> ScannedExponent::exponent() {
    if (!scanned_) exponent_ = exponent_of(largest_finite(*whole_, 0, whole_->size()));
    scanned_ = true;
    return exponent_;
}

SeenExponent::SeenExponent(std::shared_ptr<const protocol::Tensor> whole, std::shared_ptr<protocol::Waker> feed)
    : whole_(std::move(whole)),
      feed_(std::move(feed)),
      fragment_(fragment_of(*whole_)),
      seen_((whole_->size() + fragment_ - 1) / fragment_),
      missing_(seen_.size()) {}

void SeenExponent::see(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t end = first + count;
    for (; first < end; first += fragment_) {
        std::atomic<bool>& seen = seen_[first / fragment_];
        if (seen) continue;
        const std::uint32_t largest = largest_finite(*whole_, first, std::min(fragment_, end - first));
        std::uint32_t known = largest_;
        while (known < largest && !largest_.compare_exchange_weak(known, largest)) continue;
        seen = true;
        if (missing_.fetch_sub(1) == 1 && waited_for_.exchange(false)) feed_->advance();
    }
}

// The last fragment may be seen between the first look and the store. After the store, see() finds the flag.
bool SeenExponent::ready() {
    if (missing_ == 0) return true;
    waited_for_ = true;
    return missing_ == 0;
}

std::optional<unsigned> SeenExponent::exponent() { return exponent_of(largest_); }

}  // namespace atp::tensor
