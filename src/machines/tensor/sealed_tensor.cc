// SPDX-License-Identifier: Apache-2.0
#include "tensor/sealed_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "crypto/linear_code.h"
#include "numeric/lanes32_sums.h"
#include "numeric/lanes32_worker.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

constexpr std::size_t block_bytes = crypto::LinearCode::most_words * ATP_LANE_BYTES;

float value_of(Extreme extreme) {
    switch (extreme) {
        case Extreme::infinity: return std::numeric_limits<float>::infinity();
        case Extreme::minus_infinity: return -std::numeric_limits<float>::infinity();
        case Extreme::nan: break;
    }
    return std::numeric_limits<float>::quiet_NaN();
}

// The sum of what the ranks have at this element: NaN, or infinities of both signs, make NaN.
std::optional<Extreme> extreme_at(std::span<const ExtremeRun> runs, std::uint64_t element) {
    std::optional<Extreme> found;
    for (const ExtremeRun& run : runs) {
        if (element - run.first >= run.count) continue;
        found = found.value_or(run.value) == run.value ? run.value : Extreme::nan;
    }
    return found;
}

}  // namespace

template <class Lanes, class Visit>
void SealedTensor::visit(std::uint64_t first, Lanes lanes, const Visit& visit) const {
    const std::uint64_t span = inner_.tensor->spans().length;
    while (!lanes.empty()) {
        std::uint64_t count = std::min<std::uint64_t>(lanes.size() / ATP_LANE_BYTES, crypto::LinearCode::most_words);
        if (span != 0) count = std::min(count, span - first % span);
        visit(first, lanes.first(count * ATP_LANE_BYTES));
        first += count;
        lanes = lanes.subspan(count * ATP_LANE_BYTES);
    }
}

template <class Lack>
void SealedTensor::load_part(std::uint64_t first, std::span<std::byte> lanes, const Lack& lack) const {
    const protocol::Tensor& tensor = *inner_.tensor;
    const auto fits = [&](std::uint64_t at, std::span<std::byte> part) {
        if (!tensor.load_integers(at, part)) return false;
        return tensor.plain() || !numeric::exceeds(part.data(), part.size() / ATP_LANE_BYTES, seal_->bound());
    };
    if (fits(first, lanes)) return;
    for (; !lanes.empty(); ++first, lanes = lanes.subspan(ATP_LANE_BYTES)) {
        const std::span<std::byte> lane = lanes.first(ATP_LANE_BYTES);
        if (fits(first, lane)) continue;
        std::ranges::fill(lane, std::byte{0});
        lack(first);
    }
}

void SealedTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    visit(first, lanes,
          [this](std::uint64_t at, std::span<std::byte> part) { load_part(at, part, [](std::uint64_t) {}); });
}

void SealedTensor::note_lack(std::uint64_t element) {
    std::array<std::byte, ATP_LANE_BYTES> lane{};
    inner_.tensor->load_floats(element, lane);
    const float value = std::bit_cast<float>(wire::load_u32(lane.data()));
    if (std::isfinite(value)) return seal_->note_misfit();
    const Extreme extreme = std::isnan(value) ? Extreme::nan : value > 0 ? Extreme::infinity : Extreme::minus_infinity;
    seal_->note(ExtremeRun{.first = element, .count = 1, .value = extreme});
}

// What was sent is read again: it is there until the sum replaces it. So the seal sees each word once, however often
// it was sent.
void SealedTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    protocol::Tensor& tensor = *inner_.tensor;
    visit(first, lanes, [&](std::uint64_t at, std::span<const std::byte> got) {
        std::array<std::byte, block_bytes> words;
        const std::span<std::byte> own = std::span(words).first(got.size());
        load_part(at, own, [this](std::uint64_t element) { note_lack(element); });
        seal_->note({.first = first_word_ + at, .sent = own, .got = got, .words = inner_.words});
        if (tensor.plain()) return tensor.store(at, got);
        std::array<std::byte, block_bytes> floats;
        const double inverse = 1.0 / protocol::scale_from(tensor.scale(at), inner_.job_scale);
        numeric::lanes_to_floats(got.data(), got.size() / ATP_LANE_BYTES, inverse, floats.data());
        tensor.store(at, std::span(floats).first(got.size()));
    });
}

void SealedTensor::store_extremes() {
    std::vector<std::uint64_t> bounds;
    for (const ExtremeRun& run : seal_->extremes()) {
        bounds.push_back(std::min(run.first, size()));
        bounds.push_back(std::min(run.first, size()) + std::min(run.count, size() - std::min(run.first, size())));
    }
    std::ranges::sort(bounds);
    for (std::size_t at = 0; at + 1 < bounds.size(); ++at) {
        const auto extreme = extreme_at(seal_->extremes(), bounds[at]);
        if (extreme) store_all(bounds[at], bounds[at + 1], value_of(*extreme));
    }
}

void SealedTensor::store_all(std::uint64_t first, std::uint64_t end, float value) {
    protocol::Tensor& whole = *(inner_.whole != nullptr ? inner_.whole : inner_.tensor);
    std::array<std::byte, block_bytes> lanes;
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        wire::store_u32(lanes.data() + at, std::bit_cast<std::uint32_t>(value));
    }
    while (first != end) {
        const std::uint64_t count = std::min<std::uint64_t>(end - first, crypto::LinearCode::most_words);
        whole.store(first, std::span(lanes).first(count * ATP_LANE_BYTES));
        first += count;
    }
}

void SealedBlock::note(std::uint64_t first, std::span<const std::byte> sent, std::span<const std::byte> got) {
    seal_->note({.first = first_word_ + first, .sent = sent, .got = got, .words = {.kind = crypto::WordKind::natural}});
}

void SealedBlock::store(std::uint64_t first, std::span<const std::byte> lanes) {
    tensor_->store(first, lanes);
    while (!lanes.empty()) {
        const auto part = lanes.first(std::min(lanes.size(), block_bytes));
        note(first, {}, part);
        first += part.size() / ATP_LANE_BYTES;
        lanes = lanes.subspan(part.size());
    }
}

void SealedBlock::note_own() {
    std::array<std::byte, block_bytes> words;
    for (std::uint64_t first = 0; first < size(); first += crypto::LinearCode::most_words) {
        const std::uint64_t count = std::min<std::uint64_t>(size() - first, crypto::LinearCode::most_words);
        const std::span<std::byte> own = std::span(words).first(count * ATP_LANE_BYTES);
        load(first, own);
        note(first, own, own);
    }
}

void SealWordTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    const auto word = seal_->own_word().subspan(first * ATP_LANE_BYTES);
    std::ranges::copy(word.first(lanes.size()), lanes.begin());
}

}  // namespace atp::tensor
