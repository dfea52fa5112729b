// SPDX-License-Identifier: Apache-2.0
#include "tensor/dealt_tensor.h"

#include <cassert>

#include "numeric/element_type.h"

namespace atp::tensor {

DealtTensor::DealtTensor(std::vector<Block> blocks, const Rules& rules) : blocks_(std::move(blocks)), rules_(rules) {
    std::uint64_t longest = 0;
    for (const Block& block : blocks_) longest = std::max(longest, block.tensor->size());
    assert(longest != 0);
    rounds_ = rules.delivers ? (longest + rules.longest - 1) / rules.longest : 1;
    fragment_ = (longest + rounds_ - 1) / rounds_;
}

protocol::Delivery DealtTensor::delivery(std::uint64_t first) const {
    if (!rules_.delivers) return {};
    return {.owner = block_of(first).member, .one_sender = rules_.gathers};
}

template <class Call>
void DealtTensor::visit(std::uint64_t first, std::uint64_t count, Call call) const {
    while (count != 0) {
        const std::uint64_t inside = first % fragment_;
        const std::uint64_t part = std::min(fragment_ - inside, count);
        const Block& block = block_of(first);
        const std::uint64_t at = first / round() * fragment_ + inside;
        const std::uint64_t size = block.tensor->size();
        call(block, at, at >= size ? 0 : std::min(size - at, part), part);
        first += part;
        count -= part;
    }
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
    load(first, lanes, ATP_LANE_BYTES, [&](const protocol::Tensor& block, std::uint64_t at, std::span<std::byte> part) {
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
