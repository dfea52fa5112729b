// SPDX-License-Identifier: Apache-2.0
#include "tensor/fitted_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "numeric/lanes32_worker.h"
#include "numeric/narrow_lanes.h"

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
    if (form == ATP_DTYPE_INT32) return {ATP_LANE_BYTES, numeric::quantise, nullptr};
    const numeric::NarrowLanes& narrow = form == ATP_DTYPE_INT8 ? numeric::int8_lanes() : numeric::int16_lanes();
    return {narrow.bytes, narrow.quantise, narrow.to_floats};
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
    const bool own_vote_decides = numbers_.votes != nullptr && numbers_.votes->accepts(span);
    return own_vote_decides || numbers_.scales->decided(span);
}

std::uint8_t FittedTensor::scale(std::uint64_t first) const {
    return numbers_.scales == nullptr ? protocol::scale_of_job : numbers_.scales->scale(first / span_);
}

float FittedTensor::factor_of(std::uint8_t scale) const {
    return static_cast<float>(protocol::scale_from(scale, numbers_.job_scale));
}

std::uint8_t FittedTensor::cell_scale(std::uint64_t first) const {
    return numbers_.scales == nullptr ? protocol::scale_of_job : numbers_.scales->cell_scale(first / cell_);
}

template <class Visit>
bool FittedTensor::visit_cells(std::uint64_t first, std::size_t count, const Visit& visit) const {
    while (count != 0) {
        const std::size_t part = std::min<std::uint64_t>(cell_ - first % cell_, count);
        if (!visit(first, part)) return false;
        first += part;
        count -= part;
    }
    return true;
}

void FittedTensor::load_floats(std::uint64_t first, std::span<std::byte> lanes) const {
    if (!has_cells()) return tensor_->load_floats(first, lanes);
    std::array<float, block> values;
    while (!lanes.empty()) {
        const std::size_t count = std::min<std::uint64_t>(cell_ - first % cell_, lanes.size() / ATP_LANE_BYTES);
        load_values(*tensor_, first, std::span(values).first(count));
        const float ratio = std::ldexp(1.0F, int{cell_scale(first)} - int{scale(first)});
        for (float& value : std::span(values).first(count)) value *= ratio;
        numeric::floats_to_wire(values.data(), count, lanes.data());
        lanes = lanes.subspan(count * ATP_LANE_BYTES);
        first += count;
    }
}

bool FittedTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    const Codec codec = codec_of(numbers_.form);
    const std::size_t elements = lanes.size() / codec.bytes;
    const auto quantise = [&](std::uint64_t at, std::span<const float> values) {
        const bool fits = visit_cells(at, values.size(), [&](std::uint64_t begin, std::size_t count) {
            return codec.quantise(values.data() + (begin - at), count, factor_of(cell_scale(begin)),
                                  lanes.data() + (begin - first) * codec.bytes);
        });
        if (!fits) return false;
        for (std::size_t begin = 0; begin < values.size(); begin += block) {
            const bool is_looked_at = (at + begin) / block % sampling == 0;
            if (is_looked_at) tally(at + begin, values.subspan(begin, std::min(block, values.size() - begin)));
        }
        return true;
    };
    fragments_.fetch_add(1, std::memory_order_relaxed);
    if (scale(first) != protocol::exact_scale && visit_values(*tensor_, first, elements, quantise)) return true;
    floats_.fetch_add(1, std::memory_order_relaxed);
    return false;
}

void FittedTensor::tally(std::uint64_t first, std::span<const float> values) const {
    std::uint32_t some = 0;
    std::uint32_t zeros = 0;
    visit_cells(first, values.size(), [&](std::uint64_t begin, std::size_t count) {
        const float factor = factor_of(cell_scale(begin));
        for (const float value : values.subspan(begin - first, count)) {
            const std::uint32_t is_some = value != 0 ? 1 : 0;
            some += is_some;
            zeros += std::fabs(value * factor) <= 0.5F ? is_some : 0U;  // ties round to 0
        }
        return true;
    });
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
    visit_values(*tensor_, first, std::min<std::uint64_t>(block, size() - first),
                 [&](std::uint64_t at, std::span<const float> values) {
                     tally(at, values);
                     return true;
                 });
}

// The sums of one fragment or of one chunk: a chunk has several spans.
void FittedTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    if (numbers_.scales == nullptr) return tensor_->store(first, lanes);
    if (!has_cells()) return store_own(first, lanes);
    std::array<float, block> sums;
    std::array<std::byte, block * ATP_LANE_BYTES> wire;
    visit_cells(first, lanes.size() / ATP_LANE_BYTES, [&](std::uint64_t begin, std::size_t count) {
        numeric::floats_from_wire(lanes.data() + (begin - first) * ATP_LANE_BYTES, count, sums.data());
        const float ratio = std::ldexp(1.0F, int{scale(begin)} - int{cell_scale(begin)});
        for (float& sum : std::span(sums).first(count)) sum *= ratio;
        numeric::floats_to_wire(sums.data(), count, wire.data());
        store_own(begin, std::span(wire).first(count * ATP_LANE_BYTES));
        return true;
    });
}

void FittedTensor::store_narrow(std::uint64_t first, std::span<const std::byte> lanes) {
    const Codec codec = codec_of(numbers_.form);
    std::array<std::byte, block * ATP_LANE_BYTES> wire;
    const std::size_t elements = lanes.size() / codec.bytes;
    for (std::size_t at = 0; at < elements; at += block) {
        const std::size_t count = std::min(block, elements - at);
        visit_cells(first + at, count, [&](std::uint64_t begin, std::size_t part) {
            const double inverse = 1.0 / protocol::scale_from(cell_scale(begin), numbers_.job_scale);
            codec.to_floats(lanes.data() + (begin - first) * codec.bytes, part, inverse,
                            wire.data() + (begin - first - at) * ATP_LANE_BYTES);
            return true;
        });
        store_own(first + at, std::span(wire).first(count * ATP_LANE_BYTES));
    }
}

// The sums themselves: no factor of a cell is left in them.
void FittedTensor::store_own(std::uint64_t first, std::span<const std::byte> lanes) {
    if (numbers_.scales == nullptr) return tensor_->store(first, lanes);
    while (!lanes.empty()) {
        const std::size_t count = std::min<std::uint64_t>(span_ - first % span_, lanes.size() / ATP_LANE_BYTES);
        visit_cells(first, count, [&](std::uint64_t begin, std::size_t part) {
            const auto own = lanes.subspan((begin - first) * ATP_LANE_BYTES, part * ATP_LANE_BYTES);
            numbers_.scales->record(begin / cell_, store_values(*tensor_, begin, own));
            return true;
        });
        numbers_.scales->settle(first / span_, count);
        lanes = lanes.subspan(count * ATP_LANE_BYTES);
        first += count;
    }
}

void FittedTensor::settle(std::uint64_t first, std::uint64_t count, std::span<const float> largest) {
    if (numbers_.scales == nullptr) return;
    for (std::uint64_t at = 0; at < count; at += cell_) {
        numbers_.scales->record((first + at) / cell_, magnitude_bits(largest[at / cell_]));
    }
    numbers_.scales->settle(first / span_, count);
}

}  // namespace atp::tensor
