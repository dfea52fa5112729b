// SPDX-License-Identifier: Apache-2.0
#include "tensor/adaptive_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "numeric/lanes16.h"
#include "numeric/lanes32_worker.h"
#include "numeric/lanes8.h"

namespace atp::tensor {
namespace {

// One block in this many is looked at for numbers that vanish.
constexpr std::uint64_t sampling = 8;

// How a worker writes values as integers of a form, and reads their sums as float32 lanes.
struct Codec {
    std::size_t bytes;  // of an integer
    bool (*quantise)(const float* values, std::size_t count, float scale, std::byte* lanes);
    void (*to_floats)(const std::byte* lanes, std::size_t count, double inverse_scale, std::byte* wire);
};

Codec codec_of(std::uint8_t form) {
    if (form == ATP_DTYPE_INT8) return {numeric::int8_lane_bytes, numeric::quantise_int8, numeric::int8_to_floats};
    if (form == ATP_DTYPE_INT16) {
        return {numeric::int16_lane_bytes, numeric::quantise_int16, numeric::int16_to_floats};
    }
    return {ATP_LANE_BYTES, numeric::quantise, nullptr};
}

}  // namespace

FittedTensor::~FittedTensor() {
    if (numbers_.scales != nullptr) numbers_.scales->forget_reference();
    if (!numbers_.report) return;
    numbers_.report({.fragments = fragments_, .floats = floats_, .values = values_, .vanished = vanished_});
}

protocol::Spans FittedTensor::spans() const {
    return numbers_.scales == nullptr ? protocol::Spans{} : protocol::Spans{.length = span_};
}

bool FittedTensor::ready(std::uint64_t first, std::uint64_t count) const {
    if (!tensor_->ready(first, count)) return false;
    if (numbers_.scales == nullptr) return true;
    for (std::uint64_t span = first / span_; span <= (first + count - 1) / span_; ++span) {
        if (!decided(span)) return false;
    }
    return true;
}

// Usually the own vote suffices, so no worker waits for the sum of the votes.
bool FittedTensor::decided(std::uint64_t span) const {
    if (numbers_.in_memory) return numbers_.votes->ready(span);
    if (numbers_.scales->scale(span) != protocol::scale_of_job) return true;
    return numbers_.votes->accepts(span) || numbers_.scales->decided(span);
}

std::uint8_t FittedTensor::scale(std::uint64_t first) const {
    return numbers_.scales == nullptr ? protocol::scale_of_job : numbers_.scales->scale(first / span_);
}

bool FittedTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    const Codec codec = codec_of(numbers_.form);
    const std::size_t elements = lanes.size() / codec.bytes;
    const auto own = static_cast<float>(protocol::scale_from(scale(first), numbers_.job_scale));
    std::array<float, block> values;
    fragments_.fetch_add(1, std::memory_order_relaxed);
    if (scale(first) == protocol::exact_scale) {
        floats_.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    for (std::size_t at = 0; at < elements; at += block) {
        const std::size_t count = std::min(block, elements - at);
        load_values(*tensor_, first + at, std::span(values).first(count));
        if (!codec.quantise(values.data(), count, own, lanes.data() + at * codec.bytes)) {
            floats_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        if ((first + at) / block % sampling == 0) tally(first + at, values.data(), count);
    }
    return true;
}

void FittedTensor::tally(std::uint64_t first, const float* values, std::size_t count) const {
    const auto own = static_cast<float>(protocol::scale_from(scale(first), numbers_.job_scale));
    std::uint32_t some = 0;
    std::uint32_t zeros = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const std::uint32_t is_some = values[at] != 0 ? 1 : 0;
        some += is_some;
        zeros += std::fabs(values[at] * own) <= 0.5F ? is_some : 0U;  // ties round to 0
    }
    values_.fetch_add(some, std::memory_order_relaxed);
    vanished_.fetch_add(zeros, std::memory_order_relaxed);
}

std::uint32_t FittedTensor::vote(std::uint64_t first) const {
    return numbers_.votes == nullptr ? 0 : numbers_.votes->own(first / span_);
}

void FittedTensor::decide(std::uint64_t first, std::uint32_t votes) {
    if (numbers_.votes != nullptr) numbers_.votes->decide(first / span_, votes);
}

// Reports numbers that vanish at the proposed scale. If the votes refuse it, they do not.
void FittedTensor::load_native(std::uint64_t first, std::span<std::byte> elements) const {
    tensor_->load_native(first, elements);
    if (numbers_.scales != nullptr && !numbers_.votes->accepts(first / span_)) return;
    std::array<float, block> values;
    const std::size_t count = std::min<std::uint64_t>(block, size() - first);
    load_values(*tensor_, first, std::span(values).first(count));
    tally(first, values.data(), count);
}

void FittedTensor::store_block(std::uint64_t first, std::span<const std::byte> floats) {
    const std::size_t count = floats.size() / ATP_LANE_BYTES;
    if (numbers_.scales == nullptr) return tensor_->store(first, floats);
    std::array<float, block> sums;
    numeric::floats_from_wire(floats.data(), count, sums.data());
    store_values(*tensor_, first, std::span(sums).first(count), floats);
    settle(first, count, numeric::largest_magnitude(sums.data(), count));
}

// The sums of one fragment or of one chunk: a chunk has several spans.
void FittedTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    while (!lanes.empty()) {
        const std::uint64_t left = span_ - first % span_;
        const std::size_t count = std::min<std::uint64_t>({block, left, lanes.size() / ATP_LANE_BYTES});
        store_block(first, lanes.first(count * ATP_LANE_BYTES));
        lanes = lanes.subspan(count * ATP_LANE_BYTES);
        first += count;
    }
}

void FittedTensor::store_narrow(std::uint64_t first, std::span<const std::byte> lanes) {
    const Codec codec = codec_of(numbers_.form);
    const std::size_t elements = lanes.size() / codec.bytes;
    const double inverse = 1.0 / protocol::scale_from(scale(first), numbers_.job_scale);
    std::array<std::byte, block * ATP_LANE_BYTES> wire;
    for (std::size_t at = 0; at < elements; at += block) {
        const std::size_t count = std::min(block, elements - at);
        codec.to_floats(lanes.data() + at * codec.bytes, count, inverse, wire.data());
        store_block(first + at, std::span(wire).first(count * ATP_LANE_BYTES));
    }
}

void FittedTensor::settle(std::uint64_t first, std::uint64_t count, float largest) {
    if (numbers_.scales != nullptr) numbers_.scales->settle(first / span_, count, magnitude_bits(largest));
}

}  // namespace atp::tensor
