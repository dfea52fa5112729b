// SPDX-License-Identifier: Apache-2.0
#include "tensor/chunk_tensor.h"

#include <algorithm>
#include <limits>

#include "numeric/lanes32_worker.h"
#include "numeric/narrow_lanes.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

// Big-endian, in as many bytes as the type has. False: a sum does not fit, or is no number.
template <class Integer>
bool narrow(const std::byte* sums, std::size_t count, std::byte* lanes) {
    constexpr std::int32_t most = std::numeric_limits<Integer>::max();
    bool fits = true;
    for (std::size_t at = 0; at < count; ++at) {
        const auto sum = static_cast<std::int32_t>(wire::load_u32(sums + at * ATP_LANE_BYTES));
        fits &= sum >= -most && sum <= most;
        const auto bits = static_cast<std::uint32_t>(sum);
        if constexpr (sizeof(Integer) == 2) *lanes++ = static_cast<std::byte>(bits >> 8U);
        *lanes++ = static_cast<std::byte>(bits);
    }
    return fits;
}

}  // namespace

protocol::Spans ChunkTensor::spans() const {
    const protocol::Spans whole = whole_.spans();
    if (whole.length == 0) return {};
    return {.length = whole.length, .offset = (whole.offset + chunk_.first) % whole.length};
}

bool ChunkTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    if (!plain() && scale(first) == protocol::exact_scale) return false;
    const std::byte* const sums = chunk_.sums + first * ATP_LANE_BYTES;
    if (form() == ATP_DTYPE_INT8) return narrow<std::int8_t>(sums, lanes.size(), lanes.data());
    if (form() == ATP_DTYPE_INT16) {
        return narrow<std::int16_t>(sums, lanes.size() / sizeof(std::int16_t), lanes.data());
    }
    std::copy_n(sums, lanes.size(), lanes.data());
    return plain() || !numeric::exceeds(lanes.data(), lanes.size() / ATP_LANE_BYTES, INT32_MAX);
}

void ChunkTensor::load_floats_of(unsigned rank, std::uint64_t first, std::span<std::byte> lanes) const {
    std::copy_n(chunk_.ranks[rank] + first * ATP_LANE_BYTES, lanes.size(), lanes.data());
}

void ChunkTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    std::ranges::copy(lanes, chunk_.sums + first * ATP_LANE_BYTES);
}

void ChunkTensor::store_narrow(std::uint64_t first, std::span<const std::byte> lanes) {
    const double inverse = 1 / protocol::scale_from(scale(first), chunk_.job_scale);
    std::byte* const sums = chunk_.sums + first * ATP_LANE_BYTES;
    const numeric::NarrowLanes& narrow = form() == ATP_DTYPE_INT8 ? numeric::int8_lanes() : numeric::int16_lanes();
    narrow.to_floats(lanes.data(), lanes.size() / narrow.bytes, inverse, sums);
}

}  // namespace atp::tensor
