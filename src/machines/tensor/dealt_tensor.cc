// SPDX-License-Identifier: Apache-2.0
#include "tensor/dealt_tensor.h"

#include <cassert>

#include "numeric/element_type.h"

namespace atp::tensor {
namespace {

std::uint64_t divide_up(std::uint64_t elements, std::uint64_t by) { return (elements + by - 1) / by; }

}  // namespace

// Fragments of equal length fill the last round best. With spans, that round belongs to the last unit of each block.
DealtTensor::DealtTensor(std::vector<Block> blocks, const Rules& rules) : blocks_(std::move(blocks)), rules_(rules) {
    std::uint64_t size = 0;
    for (const Block& block : blocks_) size = std::max(size, block.tensor->size());
    assert(size != 0);
    const std::uint64_t span = blocks_.front().tensor->spans().length;
    unit_ = size;
    if (span != 0 && span < size) {
        const std::uint64_t spans = rules.in_memory ? std::max(rules.longest / span, std::uint64_t{1}) : 1;
        const std::uint64_t units = divide_up(size, spans * span);
        unit_ = std::min(size, divide_up(divide_up(size, units), span) * span);
    }
    cuts_ = divide_up(unit_, rules.longest);
    fragment_ = divide_up(unit_, cuts_);
    rounds_ = size / unit_ * cuts_ + divide_up(size % unit_, fragment_);
}

protocol::Delivery DealtTensor::delivery(std::uint64_t first) const {
    return {.owner = block_of(first).member, .one_sender = rules_.gathers};
}

DealtTensor::PlaceInBlock DealtTensor::place_in_block(std::uint64_t first) const {
    const std::uint64_t number = first / round();
    const std::uint64_t unit = number / cuts_ * unit_;
    const std::uint64_t cut = number % cuts_ * fragment_;
    const std::uint64_t end = unit + std::min(cut + fragment_, unit_);
    return {.at = unit + cut + first % fragment_, .end = std::min(end, block_of(first).tensor->size())};
}

template <class Call>
void DealtTensor::visit(std::uint64_t first, std::uint64_t count, Call call) const {
    while (count != 0) {
        const std::uint64_t part = std::min(fragment_ - first % fragment_, count);
        const PlaceInBlock place = place_in_block(first);
        const std::uint64_t own = place.at >= place.end ? 0 : std::min(place.end - place.at, part);
        call(block_of(first), place.at, own, part);
        first += part;
        count -= part;
    }
}

// Behind the end of a block, all ranks have zeros at the scale of the job.
std::uint8_t DealtTensor::scale(std::uint64_t first) const {
    const PlaceInBlock place = place_in_block(first);
    return place.at >= place.end ? protocol::scale_of_job : block_of(first).tensor->scale(place.at);
}

std::uint8_t DealtTensor::cell_scale(std::uint64_t first) const {
    const PlaceInBlock place = place_in_block(first);
    return place.at >= place.end ? protocol::scale_of_job : block_of(first).tensor->cell_scale(place.at);
}

void DealtTensor::settle(std::uint64_t first, std::uint64_t count, std::span<const float> largest) {
    visit(first, count, [&](const Block& block, std::uint64_t at, std::uint64_t own, std::uint64_t) {
        if (own != 0 && stores(block)) block.tensor->settle(at, own, largest);
    });
}

bool DealtTensor::ready(std::uint64_t first, std::uint64_t count) const {
    bool all = true;
    visit(first, count, [&](const Block& block, std::uint64_t at, std::uint64_t own, std::uint64_t) {
        if (own != 0 && loads(block)) all = all && block.tensor->ready(at, own);
    });
    return all;
}

template <class Load>
void DealtTensor::load(std::uint64_t first, std::span<std::byte> bytes, std::size_t unit, Load load) const {
    visit(first, bytes.size() / unit, [&](const Block& block, std::uint64_t at, std::uint64_t own, std::uint64_t all) {
        const std::size_t loaded = loads(block) ? static_cast<std::size_t>(own) * unit : 0;
        if (loaded != 0) load(*block.tensor, at, bytes.first(loaded));
        const std::size_t part = static_cast<std::size_t>(all) * unit;
        std::ranges::fill(bytes.subspan(loaded, part - loaded), std::byte{0});
        bytes = bytes.subspan(part);
    });
}

template <class Store>
void DealtTensor::store(std::uint64_t first, std::span<const std::byte> bytes, std::size_t unit, Store store) {
    visit(first, bytes.size() / unit, [&](const Block& block, std::uint64_t at, std::uint64_t own, std::uint64_t all) {
        if (own != 0 && stores(block)) store(*block.tensor, at, bytes.first(static_cast<std::size_t>(own) * unit));
        bytes = bytes.subspan(static_cast<std::size_t>(all) * unit);
    });
}

bool DealtTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    bool fits = true;
    const std::size_t unit = protocol::element_bytes(form());
    load(first, lanes, unit, [&](const protocol::Tensor& block, std::uint64_t at, std::span<std::byte> part) {
        fits = block.load_integers(at, part) && fits;
    });
    return fits;
}

void DealtTensor::load_floats(std::uint64_t first, std::span<std::byte> lanes) const {
    load(first, lanes, ATP_LANE_BYTES, [](const protocol::Tensor& block, std::uint64_t at, std::span<std::byte> part) {
        block.load_floats(at, part);
    });
}

void DealtTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    store(first, lanes, ATP_LANE_BYTES,
          [](protocol::Tensor& block, std::uint64_t at, std::span<const std::byte> part) { block.store(at, part); });
}

void DealtTensor::store_narrow(std::uint64_t first, std::span<const std::byte> lanes) {
    store(first, lanes, protocol::element_bytes(form()),
          [](protocol::Tensor& block, std::uint64_t at, std::span<const std::byte> part) {
              block.store_narrow(at, part);
          });
}

// Only if an element has one lane: the cut is that of the lanes.
protocol::NativeElements DealtTensor::native() const {
    protocol::NativeElements native = blocks_.front().tensor->native();
    for (const Block& block : blocks_) {
        if (block.tensor->native().count != block.tensor->size()) return {};
    }
    native.count = native.count == 0 ? 0 : size();
    native.in = native.out = nullptr;
    return native;
}

void DealtTensor::load_native(std::uint64_t first, std::span<std::byte> elements) const {
    const std::size_t unit = numeric::bytes_of(native().type);
    load(first, elements, unit, [](const protocol::Tensor& block, std::uint64_t at, std::span<std::byte> part) {
        block.load_native(at, part);
    });
}

void DealtTensor::store_native(std::uint64_t first, std::span<const std::byte> sums) {
    const std::size_t unit = numeric::bytes_of(native().type);
    store(first, sums, unit, [](protocol::Tensor& block, std::uint64_t at, std::span<const std::byte> part) {
        block.store_native(at, part);
    });
}

}  // namespace atp::tensor
