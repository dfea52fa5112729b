// SPDX-License-Identifier: Apache-2.0
#include "tensor/host_part.h"

#include <algorithm>
#include <utility>

#include "numeric/element_type.h"
#include "numeric/rank_sums.h"

namespace atp::tensor {
namespace {

std::uint32_t sum_of_votes(const ChunkPlaces& places, std::uint64_t span) {
    std::uint32_t sum = 0;
    for (const std::span<std::uint32_t> of_rank : places.votes) sum += of_rank[span];
    return sum;
}

}  // namespace

HostPart::HostPart(protocol::Tensor& tensor, std::uint64_t alignment, const HostRules& rules)
    : tensor_(&tensor), rules_(&rules), size_(tensor.size()), unit_bytes_(ATP_LANE_BYTES) {
    constexpr unsigned shift_of_type = 60;
    const bool network = rules.network.has_value();
    // Other hosts add lanes.
    if (!network) native_ = tensor.native();
    const std::uint64_t type = native_.count == 0 ? 0 : 1 + static_cast<std::uint64_t>(native_.type);
    purpose_ = type << shift_of_type | tensor.size() << 16U | tensor.purpose();
    if (type != 0) {
        size_ = native_.count;
        unit_bytes_ = numeric::bytes_of(native_.type);
    }
    if (const auto source = tensor.sole_source()) source_ = index_of(*source);
    const std::uint64_t most = rules.chunk_lanes * ATP_LANE_BYTES / unit_bytes_;
    const protocol::Delivery delivery = tensor.delivery(0);
    // In the network, each fragment has an owner, and a chunk has many fragments.
    owned_ = delivery.is_owned() && !network;
    // A span is never divided, so one rank adds it and finds its largest magnitude. A fragment with an owner has spans
    // of a block, on which the ranks have voted before.
    span_ = owned_ ? tensor.cell() : tensor.spans().length;
    // Over the network, the sums have the scale of the span, as packets do.
    cell_ = span_ == 0 || network ? span_ : tensor.cell();
    const auto whole_spans = [&](std::uint64_t units) {
        return span_ == 0 ? units : std::max<std::uint64_t>(units / span_, 1) * span_;
    };
    chunk_units_ = type != 0 ? whole_spans(most) : whole_spans(most / alignment * alignment);
    if (network) chunk_units_ = lanes_of_chunk(*rules.network, size_, tensor.spans().length);
    if (owned_) chunk_units_ = tensor.spans().length;
    const bool is_copied = !network && (delivery.one_sender || source_);
    range_units_ = is_copied ? chunk_units_ : whole_spans(rules.range_bytes / unit_bytes_);
    chunks_ = (size_ + chunk_units_ - 1) / chunk_units_;
}

bool HostPart::ready(std::uint64_t chunk) const {
    const UnitRange units = units_of(chunk);
    const std::uint64_t lanes = tensor_->size() / size_;  // of a unit
    return tensor_->ready(units.first * lanes, units.count * lanes);
}

HostPart::UnitRange HostPart::units_of(std::uint64_t chunk) const {
    const std::uint64_t first = (chunk - first_chunk_) * chunk_units_;
    return {.first = first, .count = static_cast<std::size_t>(std::min(chunk_units_, size_ - first))};
}

unsigned HostPart::index_of(std::uint32_t rank) const {
    return static_cast<unsigned>(std::ranges::find(rules_->ranks, rank) - rules_->ranks.begin());
}

// A chunk is a span, so its lanes and its units begin together.
protocol::Delivery HostPart::delivery_of(std::uint64_t chunk) const {
    if (!owned_) return {};
    return tensor_->delivery(units_of(chunk).first);
}

std::optional<unsigned> HostPart::copied_from(std::uint64_t chunk) const {
    if (rules_->network) return std::nullopt;
    const protocol::Delivery delivery = delivery_of(chunk);
    return delivery.one_sender ? index_of(delivery.owner) : source_;
}

// ------------------------------------------------------------------------------------------------------------- Actions

std::uint64_t HostPart::load(std::uint64_t chunk, const ChunkPlaces& places) const {
    const UnitRange units = units_of(chunk);
    const std::span place(places.ranks[rules_->rank], units.count * unit_bytes_);
    const auto source = copied_from(chunk);
    const bool is_read = (!source_ || *source_ == rules_->rank) && (!source || *source == rules_->rank);
    if (!is_read) {
        // No rank reads this part.
    } else if (native_.count != 0) {
        tensor_->load_native(units.first, place);
    } else if (tensor_->plain()) {
        static_cast<void>(tensor_->load_integers(units.first, place));
    } else {
        tensor_->load_floats(units.first, place);
    }
    const std::uint64_t copied = is_read ? place.size() : 0;
    if (!votes()) return copied;
    const std::span<std::uint32_t> own = places.votes[rules_->rank];
    for (std::uint64_t at = 0; at < units.count; at += span_) own[at / span_] = tensor_->vote(units.first + at);
    return copied;
}

void HostPart::add(std::uint64_t chunk, std::uint32_t range, const ChunkPlaces& places) {
    if (copied_from(chunk)) return;
    const UnitRange whole = units_of(chunk);
    const std::uint64_t first = range * range_units_;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(range_units_, whole.count - first));
    const std::uint64_t offset = first * unit_bytes_;
    cursors_.clear();
    for (const std::byte* rank : places.ranks) cursors_.push_back(rank + offset);
    std::byte* const sums = places.sums + offset;
    std::span<const std::byte* const> added = cursors_;
    if (source_) added = added.subspan(*source_, *source_ < cursors_.size() ? 1 : 0);
    if (native_.count != 0 && numeric::is_integer(native_.type)) {
        numeric::sum_native_ranks({.type = native_.type}, added, count, sums);
    } else if (tensor_->plain()) {
        numeric::sum_integer_ranks(added, count, sums);
    } else {
        add_floats({.first = first, .count = count}, whole.first, places, cursors_);
    }
}

// Units of the chunk, cell by cell.
void HostPart::add_floats(const UnitRange& units, std::uint64_t chunk_first, const ChunkPlaces& places,
                          Cursors cursors) const {
    std::uint64_t first = units.first;
    std::size_t count = units.count;
    std::byte* sums = places.sums + first * unit_bytes_;
    while (count != 0) {
        const std::size_t some = cell_ == 0 ? count : std::min<std::size_t>(count, cell_);
        if (votes() && first % span_ == 0) tensor_->decide(chunk_first + first, sum_of_votes(places, first / span_));
        const std::uint8_t byte =
            rules_->network ? tensor_->scale(chunk_first + first) : tensor_->cell_scale(chunk_first + first);
        const double scale = protocol::scale_from(byte, rules_->scale);
        float largest = 0;
        if (native_.count != 0) {
            const numeric::NativeSum sum{.type = native_.type, .scale = scale, .factor = native_.factor};
            largest = numeric::sum_native_ranks(sum, cursors, some, sums);
        } else if (rules_->network) {
            numeric::scale_and_sum_ranks(cursors, some, scale, sums);
        } else {
            largest = numeric::sum_float_ranks(cursors, some, scale, sums);
        }
        if (cell_ != 0 && !rules_->network) places.magnitudes[first / cell_] = largest;
        for (const std::byte*& rank : cursors) rank += some * unit_bytes_;
        sums += some * unit_bytes_;
        first += some;
        count -= some;
    }
}

std::unique_ptr<ChunkTensor> HostPart::sums_of(std::uint64_t chunk, const ChunkPlaces& places,
                                               std::shared_ptr<const void> keeps) const {
    const UnitRange units = units_of(chunk);
    return std::make_unique<ChunkTensor>(*tensor_,
                                         ChunkTensor::ChunkSums{.sums = places.sums,
                                                                .ranks = {places.ranks.begin(), places.ranks.end()},
                                                                .first = units.first,
                                                                .count = units.count,
                                                                .job_scale = rules_->scale,
                                                                .keeps = std::move(keeps)});
}

std::uint64_t HostPart::store(std::uint64_t chunk, const ChunkPlaces& places) const {
    const UnitRange units = units_of(chunk);
    if (!delivery_of(chunk).receives(rules_->ranks[rules_->rank])) return 0;
    const auto source = copied_from(chunk);
    const std::span sums(source ? places.ranks[*source] : places.sums, units.count * unit_bytes_);
    if (votes()) {
        for (std::uint64_t at = 0; at < units.count; at += span_) {
            tensor_->decide(units.first + at, sum_of_votes(places, at / span_));
        }
    }
    if (native_.count != 0) {
        tensor_->store_native(units.first, sums);
        settle(units, places);
    } else {
        tensor_->store(units.first, sums);
    }
    return sums.size();
}

void HostPart::settle(const UnitRange& units, const ChunkPlaces& places) const {
    if (span_ == 0) return;
    const std::span<const float> magnitudes = places.magnitudes;
    for (std::uint64_t at = 0; at < units.count; at += span_) {
        tensor_->settle(units.first + at, std::min<std::uint64_t>(span_, units.count - at),
                        magnitudes.subspan(at / cell_));
    }
}

}  // namespace atp::tensor
