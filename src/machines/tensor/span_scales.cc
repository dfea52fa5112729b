// SPDX-License-Identifier: Apache-2.0
#include "tensor/span_scales.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "wire/format.h"

namespace atp::tensor {
namespace {

constexpr int exponent_bias = 127;
constexpr unsigned mantissa_bits = 23;
constexpr std::size_t most_cells = span_elements(ATP_DTYPE_INT16) / cell_elements(ATP_DTYPE_INT16);
static_assert(most_cells == span_elements(ATP_DTYPE_INT8) / cell_elements(ATP_DTYPE_INT8));

std::uint8_t plus(std::uint8_t scale, int exponent) {
    return static_cast<std::uint8_t>(std::clamp(int{scale} + exponent, 1, 255));
}

// The exponent of a magnitude above 0. Of a subnormal number one that is too large, whose scale is the finest anyway.
int binary_exponent(std::uint32_t magnitude) { return static_cast<int>(magnitude >> mantissa_bits) - exponent_bias; }

// Of a sum of numbers that have this exponent, as the 8 bits of a float32, or a smaller one.
int exponent_of_sum(unsigned exponent, std::uint32_t ranks) {
    return std::max(static_cast<int>(exponent), 1) - exponent_bias + static_cast<int>(std::bit_width(ranks - 1));
}

// The scale at which a number with this exponent is an integer of `bits` bits.
std::uint8_t scale_for(int exponent, int bits) { return protocol::scale_byte(bits - 1 - exponent); }

}  // namespace

int bits_of_sum(std::uint8_t form, numeric::ElementType type) {
    constexpr int wide = 25;
    constexpr int short_bits = 13;
    constexpr int half_bits = 14;
    constexpr int byte_bits = 5;
    if (form == ATP_DTYPE_INT8) return byte_bits;
    if (form == ATP_DTYPE_INT32) return wide;
    return type == numeric::ElementType::float16 ? half_bits : short_bits;
}

int bits_of_first_sum(std::uint8_t form) {
    constexpr int bits_of_int16 = 15;
    constexpr int bits_of_int8 = 7;
    if (form == ATP_DTYPE_INT16) return bits_of_int16;
    return form == ATP_DTYPE_INT8 ? bits_of_int8 : bits_of_sum(form);
}

std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & ~(1U << 31U); }

std::uint8_t next_scale(std::uint8_t used, std::uint32_t largest, int bits) {
    if (largest == 0) return used;
    if (largest >= infinity_bits) return plus(used, -1);
    const std::uint8_t fitting = scale_for(binary_exponent(largest), bits);
    return std::min(fitting, plus(used, most_rise));
}

std::uint8_t first_scale(std::optional<unsigned> exponent, std::uint32_t ranks, int bits, double job_scale) {
    if (!exponent) return protocol::scale_byte(std::ilogb(job_scale));
    return scale_for(exponent_of_sum(*exponent, ranks), bits);
}

std::uint32_t least_magnitude(std::uint8_t scale, std::uint32_t ranks, int bits) {
    const int above = bits - 1;
    const int least = std::max(above - above / 3 - static_cast<int>(std::bit_width(ranks - 1)), 0);
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::ldexp(1.0, least - int{scale} + int{ATP_SCALE_ONE})));
}

SpanScales::SpanScales(std::uint64_t elements, std::uint8_t form, std::shared_ptr<SpanScales> reference,
                       std::shared_ptr<protocol::Waker> feed, numeric::ElementType type)
    : elements_(elements),
      form_(form),
      bits_(bits_of_sum(form, type)),
      cells_of_span_(span_elements(form) / cell_elements(form)),
      spans_(spans_of(elements, form)),
      cells_((elements + cell_elements(form) - 1) / cell_elements(form)),
      reference_(std::move(reference)),
      feed_(std::move(feed)) {
    for (Span& span : spans_) {
        span.missing = static_cast<std::uint32_t>(std::min(span_elements(form), elements));
        elements -= span.missing;
    }
}

void SpanScales::begin(std::uint8_t common) {
    for (std::uint64_t span = 0; span < spans_.size(); ++span) begin(span, common);
}

void SpanScales::begin(std::uint64_t span, std::uint8_t common) {
    for (std::uint64_t cell = first_cell(span); cell < end_cell(span); ++cell) {
        cells_[cell].used.store(common, std::memory_order_relaxed);
    }
    spans_[span].coarsest = common;
    spans_[span].used = common;
    if (waited_for_.exchange(false)) feed_->advance();
}

std::uint64_t SpanScales::end_cell(std::uint64_t span) const {
    return std::min<std::uint64_t>(first_cell(span + 1), cells_.size());
}

bool SpanScales::ready(std::uint64_t number) {
    const Span& span = spans_[number];
    if (span.used != protocol::scale_of_job) return true;
    if (reference_ != nullptr) return follow(number);
    // begin() may run between the first load and the store. After the store it sees the flag.
    waited_for_ = true;
    return span.used != protocol::scale_of_job;
}

// Several threads may follow at once: they write the same scales. That of the span comes last, and says that all are
// known.
bool SpanScales::follow(std::uint64_t number) {
    if (!reference_->poll_settled(number)) return false;
    std::array<std::uint8_t, most_cells> next;
    const std::span scales = std::span(next).first(end_cell(number) - first_cell(number));
    reference_->next_scales(number, scales);
    for (std::size_t at = 0; at < scales.size(); ++at) {
        cells_[first_cell(number) + at].used.store(scales[at], std::memory_order_relaxed);
    }
    spans_[number].coarsest = *std::ranges::min_element(scales);
    spans_[number].used = *std::ranges::max_element(scales);
    return true;
}

void SpanScales::decide(std::uint64_t number, bool accept) {
    spans_[number].decided = accept ? proposal(number) : protocol::exact_scale;
    if (waited_for_.exchange(false)) feed_->advance();
}

// decide() may run between the first load and the store. After the store it sees the flag.
bool SpanScales::decided(std::uint64_t number) {
    const std::atomic<std::uint8_t>& scale = spans_[number].decided;
    if (scale != protocol::scale_of_job) return true;
    waited_for_ = true;
    return scale != protocol::scale_of_job;
}

std::uint8_t SpanScales::cell_scale(std::uint64_t cell) const {
    const std::uint8_t of_span = scale(cell / cells_of_span_);
    return of_span == protocol::exact_scale ? of_span : cells_[cell].used.load(std::memory_order_relaxed);
}

void SpanScales::record(std::uint64_t cell, std::uint32_t largest) {
    std::atomic<std::uint32_t>& found = cells_[cell].largest;
    std::uint32_t known = found.load(std::memory_order_relaxed);
    while (known < largest && !found.compare_exchange_weak(known, largest, std::memory_order_relaxed)) continue;
}

// Who sees that nothing is missing sees what was recorded before.
void SpanScales::settle(std::uint64_t span, std::uint64_t count) {
    if (spans_[span].missing.fetch_sub(static_cast<std::uint32_t>(count)) != count) return;
    if (waited_for_.exchange(false)) feed_->advance();
}

std::uint8_t SpanScales::exponent(std::uint64_t cell) const {
    const std::uint32_t largest = cells_[cell].largest.load(std::memory_order_relaxed);
    if (largest == 0) return 0;
    return static_cast<std::uint8_t>(std::clamp(largest >> mantissa_bits, 1U, infinity_bits >> mantissa_bits));
}

void SpanScales::settle_cell(std::uint64_t number, std::uint8_t exponent) {
    record(number, std::uint32_t{exponent} << mantissa_bits);
    settle(number / cells_of_span_, std::min(cell(), elements_ - number * cell()));
}

// Nothing is known of a cell of zeros, so it takes the scale of the largest numbers near it.
void SpanScales::next_scales(std::uint64_t span, std::span<std::uint8_t> scales) const {
    const std::span cells = std::span(cells_).subspan(first_cell(span), scales.size());
    std::optional<std::uint8_t> coarsest;
    for (std::size_t at = 0; at < cells.size(); ++at) {
        const std::uint32_t largest = cells[at].largest.load(std::memory_order_relaxed);
        scales[at] = next_scale(cells[at].used.load(std::memory_order_relaxed), largest, bits_);
        if (largest != 0) coarsest = std::min(coarsest.value_or(scales[at]), scales[at]);
    }
    if (!coarsest) return;
    const std::uint8_t most = std::max(*coarsest, std::min(plus(*coarsest, most_gain), finest_gain));
    for (std::size_t at = 0; at < cells.size(); ++at) {
        const bool is_zero = cells[at].largest.load(std::memory_order_relaxed) == 0;
        scales[at] = is_zero ? *coarsest : std::min(scales[at], most);
    }
}

// The span may settle between the first look and the store. After the store, settle() sees the flag.
bool SpanScales::poll_settled(std::uint64_t span) {
    if (settled(span)) return true;
    waited_for_ = true;
    return settled(span);
}

}  // namespace atp::tensor
