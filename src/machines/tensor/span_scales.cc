// SPDX-License-Identifier: Apache-2.0
#include "tensor/span_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "wire/format.h"

namespace atp::tensor {
namespace {

constexpr int exponent_bias = 127;
constexpr int most_exponent = 127;  // of a float32

std::uint8_t plus(std::uint8_t scale, int exponent) {
    return static_cast<std::uint8_t>(std::clamp(int{scale} + exponent, 1, 255));
}

// Of a sum of numbers that have this exponent, as the 8 bits of a float32, or a smaller one.
int exponent_of_sum(unsigned exponent, std::uint32_t ranks) {
    return std::max(static_cast<int>(exponent), 1) - exponent_bias + static_cast<int>(std::bit_width(ranks - 1));
}

// The scale at which a number with this exponent is an integer of `bits` bits.
std::uint8_t scale_for(int exponent, int bits) { return protocol::scale_byte(bits - 1 - exponent); }

}  // namespace

int bits_of_sum(std::uint8_t form) {
    constexpr int wide = 25;
    constexpr int short_bits = 13;
    constexpr int byte_bits = 5;
    if (form == ATP_DTYPE_INT8) return byte_bits;
    return form == ATP_DTYPE_INT16 ? short_bits : wide;
}

std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & ~(1U << 31U); }

std::uint8_t next_scale(std::uint8_t used, std::uint32_t largest, std::uint8_t form) {
    if (largest == 0) return used;
    if (largest >= infinity_bits) return plus(used, -1);
    const std::uint8_t fitting = scale_for(std::ilogb(std::bit_cast<float>(largest)), bits_of_sum(form));
    return std::min(fitting, plus(used, most_rise));
}

std::uint8_t first_scale(std::optional<unsigned> exponent, std::uint32_t ranks, std::uint8_t form, double job_scale) {
    if (!exponent) return protocol::scale_byte(std::ilogb(job_scale));
    return scale_for(exponent_of_sum(*exponent, ranks), bits_of_sum(form));
}

std::uint32_t magnitude_of_sum(std::optional<unsigned> exponent, std::uint32_t ranks) {
    if (!exponent) return 0;
    return magnitude_bits(std::ldexp(1.0F, std::min(exponent_of_sum(*exponent, ranks), most_exponent)));
}

std::uint32_t least_magnitude(std::uint8_t scale, std::uint32_t ranks, std::uint8_t form) {
    const int bits = bits_of_sum(form) - 1;
    const int least = std::max(bits - bits / 3 - static_cast<int>(std::bit_width(ranks - 1)), 0);
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::ldexp(1.0, least - int{scale} + int{ATP_SCALE_ONE})));
}

SpanScales::SpanScales(std::uint64_t elements, std::uint8_t form, std::shared_ptr<SpanScales> reference,
                       std::shared_ptr<protocol::Waker> feed)
    : form_(form), spans_(spans_of(elements, form)), reference_(std::move(reference)), feed_(std::move(feed)) {
    for (Span& span : spans_) {
        span.missing = static_cast<std::uint32_t>(std::min(span_elements(form), elements));
        elements -= span.missing;
    }
}

void SpanScales::begin(std::uint8_t common) {
    for (Span& span : spans_) span.used = common;
    if (waited_for_.exchange(false)) feed_->advance();
}

bool SpanScales::ready(std::uint64_t number) {
    Span& span = spans_[number];
    if (span.used != protocol::scale_of_job) return true;
    if (reference_ == nullptr) {
        // begin() may run between the first load and the store. After the store it sees the flag.
        waited_for_ = true;
        return span.used != protocol::scale_of_job;
    }
    const auto scale = reference_->next_or_wait(number);
    if (scale) span.used = *scale;
    return scale.has_value();
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

void SpanScales::settle(std::uint64_t number, std::uint64_t count, std::uint32_t largest) {
    Span& span = spans_[number];
    std::uint32_t known = span.largest;
    while (known < largest && !span.largest.compare_exchange_weak(known, largest)) continue;
    if (span.missing.fetch_sub(static_cast<std::uint32_t>(count)) != count) return;
    if (waited_for_.exchange(false)) feed_->advance();
}

std::optional<std::uint8_t> SpanScales::next(std::uint64_t number) const {
    const Span& span = spans_[number];
    if (span.missing != 0) return std::nullopt;
    return next_scale(span.used, span.largest, form_);
}

// The span may settle between the first look and the store. After the store, settle() sees the flag.
std::optional<std::uint8_t> SpanScales::next_or_wait(std::uint64_t number) {
    if (const auto scale = next(number)) return scale;
    waited_for_ = true;
    return next(number);
}

}  // namespace atp::tensor
