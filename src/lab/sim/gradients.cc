// SPDX-License-Identifier: Apache-2.0
#include "sim/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "numeric/exact_sum.h"
#include "numeric/lanes32_switch.h"
#include "wire/packet.h"

namespace atp::sim {
namespace {

constexpr std::size_t pattern_words = 4096;
constexpr std::int32_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t int_min = std::numeric_limits<std::int32_t>::min();
constexpr std::uint64_t plain_draw = 0x706c61696e;  // of plain tensors: a random stream of their own
constexpr std::uint64_t owned_draw = 0x6f776e6564;  // of tensors with owners

// An element fits the 24 significant bits of a float32, and the sum over all workers fits `sum_bits`.
unsigned bits_of_small_element(unsigned workers, unsigned sum_bits) {
    const auto bits_of_workers = static_cast<unsigned>(std::bit_width(workers));
    return std::min(24U, sum_bits - bits_of_workers);
}

// Values that fit no integer at any usual scale, and values that conversions lose most easily.
float special_float(std::uint64_t random) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    constexpr std::array<float, 11> specials{std::numeric_limits<float>::quiet_NaN(),
                                             inf,
                                             -inf,
                                             1e30F,
                                             -1e30F,
                                             3.4e38F,
                                             -3.4e38F,
                                             1e-45F,
                                             -1e-40F,
                                             -0.0F,
                                             0.0F};
    return specials[random % specials.size()];
}

void write_float(std::int64_t sum, std::span<std::byte> out, std::size_t lane) {
    const auto value = static_cast<float>(static_cast<double>(sum) / gradient_scale);
    wire::store_u32(out.data() + lane * ATP_LANE_BYTES, std::bit_cast<std::uint32_t>(value));
}

}  // namespace

GradientSource::GradientSource(const GradientShape& shape)
    : shape_(shape),
      pattern_(pattern_words + shape.payload_lanes),
      weights_(shape.workers),
      cache_(std::bit_ceil(4U * shape.window)),
      expected_(cache_.size() * shape.payload_lanes * ATP_LANE_BYTES),
      scratch_(shape.payload_lanes) {
    const unsigned bits = bits_of_small_element(shape.workers, shape.sum_bits);
    value_mask_ = (1U << (bits - 1)) - 1U;
    Random random(shape.key, 0);
    for (std::uint32_t& word : pattern_) word = static_cast<std::uint32_t>(random.next() >> 32U);
    // An odd factor permutes the values modulo a power of two, so all workers have different weights.
    const auto offset = static_cast<std::uint32_t>(random.next());
    for (unsigned rank = 0; rank < shape.workers; ++rank) {
        weights_[rank] = static_cast<std::int32_t>((rank * 2654435761U + offset) & value_mask_);
        weights_sum_ += weights_[rank];
    }
}

bool GradientSource::plain(std::uint64_t tensor) const {
    if (delivery(tensor, 0).one_sender) return true;
    return share_of_one(mix64(mix64(shape_.key, tensor), plain_draw)) < shape_.plain_share;
}

GradientSource::Kind GradientSource::draw_kind(std::uint64_t key, bool plain) const {
    const double drawn = share_of_one(mix64(key, 1));
    if (drawn < shape_.float_share) return plain ? Kind::wide : Kind::floats;
    if (drawn < shape_.float_share + shape_.overflow_share) return Kind::overflow;
    return !plain && peak_of(key) > static_cast<std::int32_t>(value_mask_ + 1) ? Kind::peak : Kind::small;
}

std::int32_t GradientSource::peak_of(std::uint64_t key) const {
    constexpr double usual_scale = 1e8;
    if (!shape_.sizes) return 0;
    return static_cast<std::int32_t>(std::min(shape_.sizes->draw(key) * usual_scale, double{int_max}));
}

GradientSource::Fragment& GradientSource::fragment(std::uint64_t tensor, std::uint64_t number) {
    Fragment& entry = cache_[number & (cache_.size() - 1)];
    if (entry.known && entry.tensor == tensor && entry.number == number) return entry;
    const std::uint64_t key = mix64(mix64(shape_.key, tensor), number);
    const bool is_plain = plain(tensor);
    entry = Fragment{.tensor = tensor,
                     .number = number,
                     .key = key,
                     .kind = draw_kind(key, is_plain),
                     .plain = is_plain,
                     .known = true,
                     .expected_known = false};
    return entry;
}

std::span<std::byte> GradientSource::expected_of(const Fragment& fragment) {
    const std::size_t bytes = std::size_t{shape_.payload_lanes} * ATP_LANE_BYTES;
    return {expected_.data() + static_cast<std::size_t>(&fragment - cache_.data()) * bytes, bytes};
}

void GradientSource::fill_small(const Fragment& fragment, std::int32_t weight, std::span<std::int32_t> out) const {
    const std::uint32_t* from = pattern_.data() + (fragment.key & (pattern_words - 1));
    const auto flip = static_cast<std::uint32_t>(fragment.key >> 32U);
    const std::uint32_t mask = value_mask_;
    const std::int32_t shift = weight - static_cast<std::int32_t>(mask / 2 + 1) * 2;
    for (std::size_t lane = 0; lane < out.size(); ++lane) {
        out[lane] = static_cast<std::int32_t>((from[lane] ^ flip) & mask) + shift;
    }
}

// The size keeps 24 significant bits, which a float32 holds.
void GradientSource::fill_peak(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const {
    constexpr std::int32_t significant = ~0x7f;
    fill_small(fragment, weight(rank), out);
    const std::size_t lane = fragment.key % shape_.payload_lanes;
    if (lane >= out.size()) return;
    const std::uint64_t random = mix64(fragment.key, 3 + rank);
    const double size = peak_of(fragment.key) * (1 + share_of_one(random)) / 2;
    const std::int32_t magnitude = static_cast<std::int32_t>(size) & significant;
    out[lane] = (random & 1U) != 0 ? magnitude : -magnitude;
}

// Each lane draws a case: one worker reaches the limit of int32 alone, two reach it exactly, only some orders overflow,
// or all orders overflow (H21, H22, H23, docs/spec/hazards.md).
void GradientSource::fill_overflow(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const {
    const bool first = rank == fragment.key % shape_.workers;
    const bool even = ((rank ^ fragment.key) & 1U) == 0;
    const auto small = static_cast<std::int32_t>(rank % 7) + 1;
    const std::array<std::int32_t, 8> cases{
        1 << 30,                             // two reach 2^31: overflow in every order
        even ? int_max : -int_max,           // cancels, or overflows if two equal values are added first
        first ? int_max : small,             // the last addition exceeds the limit
        first ? -int_max : -1,               // INT32_MIN as a partial sum, then below it
        first ? int_max : 0,                 // exactly the limit: no overflow
        first ? -int_max : 0,                // exactly the negative limit: no overflow
        even ? -(1 << 30) : 0,               // two reach INT32_MIN exactly
        -static_cast<std::int32_t>(1) << 30  // all workers negative
    };
    for (std::size_t lane = 0; lane < out.size(); ++lane) {
        out[lane] = cases[(pattern_[(fragment.key + lane) & (pattern_words - 1)] >> 8U) % cases.size()];
    }
}

// Every eighth lane is INT32_MIN, a value that scaled numbers never have.
void GradientSource::fill_wide(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const {
    for (std::size_t lane = 0; lane < out.size(); ++lane) {
        const std::uint64_t random = mix64(fragment.key ^ (std::uint64_t{rank} << 32U), lane);
        out[lane] = random % 8 == 0 ? int_min : static_cast<std::int32_t>(random >> 32U);
    }
}

void GradientSource::fill_integers(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const {
    if (fragment.kind == Kind::overflow) {
        fill_overflow(fragment, rank, out);
    } else if (fragment.kind == Kind::peak) {
        fill_peak(fragment, rank, out);
    } else if (fragment.kind == Kind::wide) {
        fill_wide(fragment, rank, out);
    } else {
        fill_small(fragment, weight(rank), out);
    }
}

// Whether the worker has special values in a fragment of floats. One worker always has them, each other worker with a
// probability of 1/4.
bool GradientSource::odd(const Fragment& fragment, unsigned rank) const {
    return rank == mix64(fragment.key, 2) % shape_.workers || mix64(fragment.key, 3 + rank) % 4 == 0;
}

bool GradientSource::integers(unsigned rank, std::uint64_t tensor, std::uint64_t number, std::span<std::byte> lanes) {
    const Fragment& f = fragment(tensor, number);
    if (f.kind == Kind::floats && odd(f, rank)) return false;
    const std::span<std::int32_t> values = std::span(scratch_).first(lanes.size() / ATP_LANE_BYTES);
    fill_integers(f, rank, values);
    numeric::lanes_emit(values.data(), values.size(), lanes.data());
    return true;
}

void GradientSource::floats(unsigned rank, std::uint64_t tensor, std::uint64_t number, std::span<std::byte> lanes) {
    write_floats(fragment(tensor, number), rank, lanes);
}

void GradientSource::write_floats(const Fragment& f, unsigned rank, std::span<std::byte> lanes) {
    const std::span<std::int32_t> integers = std::span(scratch_).first(lanes.size() / ATP_LANE_BYTES);
    fill_integers(f, rank, integers);
    const bool has_specials = f.kind == Kind::floats && odd(f, rank);
    for (std::size_t lane = 0; lane < integers.size(); ++lane) {
        float value = static_cast<float>(integers[lane] / gradient_scale);
        const std::uint64_t random = mix64(f.key ^ (std::uint64_t{rank} << 32U), lane);
        // Lane 0 always has a value that does not fit an integer.
        if (has_specials && lane == 0) value = (random & 1U) != 0 ? 1e30F : -1e30F;
        if (has_specials && lane != 0 && random % 8 == 0) value = special_float(random >> 8U);
        wire::store_u32(lanes.data() + lane * ATP_LANE_BYTES, std::bit_cast<std::uint32_t>(value));
    }
}

void GradientSource::add_everybody(const Fragment& f, std::span<std::int64_t> sums) {
    const bool closed_form = f.kind == Kind::small;
    for (unsigned rank = 0; rank < (closed_form ? 1 : shape_.workers); ++rank) {
        fill_integers(f, rank, scratch_);
        for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += scratch_[lane];
    }
    if (!closed_form) return;
    for (std::int64_t& sum : sums) sum = (sum - weights_[0]) * std::int64_t{shape_.workers} + weights_sum_;
}

// An element is a sum of integers if every worker has one, otherwise the exact sum of the floats.
void GradientSource::compute_floats(const Fragment& f, std::span<std::byte> out) {
    const std::size_t lanes = shape_.payload_lanes;
    std::vector<numeric::ExactLane> exact(lanes, numeric::ExactLane{});
    std::vector<std::int64_t> sums(lanes, 0);
    std::vector<bool> fits(lanes, true);
    std::vector<std::byte> wire(lanes * ATP_LANE_BYTES);
    for (unsigned rank = 0; rank < shape_.workers; ++rank) {
        write_floats(f, rank, wire);
        numeric::exact_add(wire.data(), lanes, exact.data());
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const auto value = std::bit_cast<float>(wire::load_u32(wire.data() + lane * ATP_LANE_BYTES));
            const float scaled = value * static_cast<float>(gradient_scale);
            fits[lane] = fits[lane] && std::abs(scaled) < 0x1p31F;
            if (fits[lane]) sums[lane] += std::llrint(scaled);
        }
    }
    numeric::exact_round(exact.data(), lanes, out.data());
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        if (fits[lane]) write_float(sums[lane], out, lane);
    }
}

// The definition of a result (docs/spec/numbers.md#result), computed directly: exact sums, one division by the scale.
void GradientSource::compute_expected(Fragment& f) {
    const std::size_t lanes = shape_.payload_lanes;
    const std::span<std::byte> out = expected_of(f);
    f.expected_known = true;
    if (f.kind == Kind::floats) return compute_floats(f, out);
    std::vector<std::int64_t> sums(lanes, 0);
    if (const protocol::Delivery result = delivery(f.tensor, f.number); result.one_sender) {
        fill_integers(f, result.owner, scratch_);
        std::ranges::copy(scratch_, sums.begin());
    } else {
        add_everybody(f, sums);
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        if (f.plain) {
            wire::store_u32(out.data() + lane * ATP_LANE_BYTES, static_cast<std::uint32_t>(sums[lane]));
        } else {
            write_float(sums[lane], out, lane);
        }
    }
}

protocol::Delivery GradientSource::delivery(std::uint64_t tensor, std::uint64_t fragment) const {
    const double draw = shape_.owned_share == 0 ? 1 : share_of_one(mix64(mix64(shape_.key, tensor), owned_draw));
    if (draw >= shape_.owned_share) return {};
    return {.owner = static_cast<std::uint16_t>(fragment % shape_.workers),
            .one_sender = draw < shape_.owned_share / 2};
}

std::uint64_t GradientTensor::received() const {
    const std::uint64_t longest = source_.shape().payload_lanes;
    std::uint64_t elements = 0;
    for (std::uint64_t first = 0; first < elements_; first += longest) {
        if (!delivery(first).receives(static_cast<std::uint16_t>(rank_))) continue;
        elements += std::min(longest, elements_ - first);
    }
    return elements;
}

bool GradientSource::verify(std::uint64_t tensor, std::uint64_t number, std::span<const std::byte> lanes) {
    Fragment& f = fragment(tensor, number);
    if (!f.expected_known) compute_expected(f);
    const std::span<const std::byte> expected = expected_of(f);
    if (std::memcmp(lanes.data(), expected.data(), lanes.size()) == 0) return true;
    if (!mismatch_.empty()) return false;
    const auto differs = std::ranges::mismatch(lanes, expected).in1 - lanes.begin();
    const auto lane = static_cast<std::size_t>(differs) / ATP_LANE_BYTES;
    mismatch_ = fmt::format("tensor {} fragment {} lane {}: {:#010x} instead of {:#010x}", tensor, number, lane,
                            wire::load_u32(lanes.data() + lane * ATP_LANE_BYTES),
                            wire::load_u32(expected.data() + lane * ATP_LANE_BYTES));
    return false;
}

}  // namespace atp::sim
