// SPDX-License-Identifier: Apache-2.0
// What a HostDriver does with the elements of a chunk: copies, sums, and their way to the network.
#include <algorithm>

#include "comm/chunk_tensor.h"
#include "comm/host_driver.h"
#include "numeric/rank_sums.h"

namespace atp::comm {

void HostDriver::load(const protocol::HostAction& action) {
    const Part& part = part_of(action.chunk);
    const tensor::Slice& tensor = part.work->slices().front();
    const UnitRange units = units_of(part, action.chunk);
    const std::span place(memory_->lanes_of(action.slot, memory_->rank()), units.count * part.unit_bytes);
    const auto source = copied_from(part, action.chunk);
    if ((part.source && *part.source != memory_->rank()) || (source && *source != memory_->rank())) {
        // No rank reads this part.
    } else if (part.native.count != 0) {
        tensor.load_native(units.first, place);
    } else if (tensor.plain()) {
        static_cast<void>(tensor.load_integers(units.first, place));
    } else {
        tensor.load_floats(units.first, place);
    }
    if (votes(part)) {
        const std::span<std::uint32_t> own = memory_->votes_of(action.slot, memory_->rank());
        for (std::uint64_t at = 0; at < units.count; at += part.span) {
            own[at / part.span] = tensor.vote(units.first + at);
        }
    }
    memory_->state_call(action.slot, part.purpose, part.work->called());
}

void HostDriver::add(const protocol::HostAction& action) {
    const Part& part = part_of(action.chunk);
    if (copied_from(part, action.chunk)) return;
    const tensor::Slice& tensor = part.work->slices().front();
    const std::uint64_t first = action.range * part.range_units;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(part.range_units, units_of(part, action.chunk).count - first));
    const std::uint64_t offset = first * part.unit_bytes;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) ranks_[rank] = memory_->lanes_of(action.slot, rank) + offset;
    std::byte* const sums = memory_->sums_of(action.slot) + offset;
    std::span<const std::byte* const> added = ranks_;
    if (part.source) added = added.subspan(*part.source, *part.source < ranks_.size() ? 1 : 0);
    if (part.native.count != 0 && numeric::is_integer(part.native.type)) {
        numeric::sum_native_ranks({.type = part.native.type}, added, count, sums);
    } else if (tensor.plain()) {
        numeric::sum_integer_ranks(added, count, sums);
    } else {
        add_floats(action, part, first, count);
    }
}

// Units of the chunk from `first` on, cell by cell. `ranks_` are their places.
void HostDriver::add_floats(const protocol::HostAction& action, const Part& part, std::uint64_t first,
                            std::size_t count) {
    tensor::Slice& tensor = part.work->slices().front();
    const std::uint64_t chunk = units_of(part, action.chunk).first;
    std::byte* sums = memory_->sums_of(action.slot) + first * part.unit_bytes;
    while (count != 0) {
        const std::size_t some = part.cell == 0 ? count : std::min<std::size_t>(count, part.cell);
        if (votes(part) && first % part.span == 0) {
            tensor.decide(chunk + first, sum_of_votes(action.slot, first / part.span));
        }
        const std::uint8_t byte = network_ ? tensor.scale(chunk + first) : tensor.cell_scale(chunk + first);
        const double scale = protocol::scale_from(byte, scale_);
        float largest = 0;
        if (part.native.count != 0) {
            const numeric::NativeSum sum{.type = part.native.type, .scale = scale, .factor = part.native.factor};
            largest = numeric::sum_native_ranks(sum, ranks_, some, sums);
        } else if (network_) {
            numeric::scale_and_sum_ranks(ranks_, some, scale, sums);
        } else {
            largest = numeric::sum_float_ranks(ranks_, some, scale, sums);
        }
        if (part.cell != 0 && !network_) memory_->magnitudes_of(action.slot)[first / part.cell] = largest;
        for (const std::byte*& rank : ranks_) rank += some * part.unit_bytes;
        sums += some * part.unit_bytes;
        first += some;
        count -= some;
    }
}

std::uint32_t HostDriver::sum_of_votes(unsigned slot, std::uint64_t span) const {
    std::uint32_t sum = 0;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) sum += memory_->votes_of(slot, rank)[span];
    return sum;
}

// A chunk is a work of its own for the network.
void HostDriver::send(const protocol::HostAction& action) {
    const Part& part = part_of(action.chunk);
    const tensor::Slice& tensor = part.work->slices().front();
    const UnitRange units = units_of(part, action.chunk);
    ChunkTensor::ChunkSums sums{.sums = memory_->sums_of(action.slot),
                                .first = units.first,
                                .count = units.count,
                                .job_scale = scale_,
                                .operation = part.work,
                                .memory = shared_from_this()};
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) sums.ranks.push_back(memory_->lanes_of(action.slot, rank));
    const auto work = std::make_shared<Work>(part.work->operation(), std::make_unique<ChunkTensor>(std::move(sums)),
                                             part.work->begun(), part.work->deadline());
    work->add_slice(0, units.count, tensor.purpose());
    work->set_called(part.work->called());
    work->on_done([this, raw = work.get(), slot = action.slot, chunk = action.chunk] {
        if (const auto outcome = raw->outcome(); !outcome) return abort(outcome.error());
        memory_->complete(slot, chunk);
        notify(slot);
    });
    network_->send(work, action.chunk);
}

void HostDriver::store(const protocol::HostAction& action) {
    const Part& part = part_of(action.chunk);
    tensor::Slice& tensor = part.work->slices().front();
    const UnitRange units = units_of(part, action.chunk);
    if (!delivery_of(part, action.chunk).receives(numbers_[memory_->rank()])) return;
    const auto source = copied_from(part, action.chunk);
    const std::byte* const from = source ? memory_->lanes_of(action.slot, *source) : memory_->sums_of(action.slot);
    const std::span sums(from, units.count * part.unit_bytes);
    if (votes(part)) {
        for (std::uint64_t at = 0; at < units.count; at += part.span) {
            tensor.decide(units.first + at, sum_of_votes(action.slot, at / part.span));
        }
    }
    if (part.native.count != 0) {
        tensor.store_native(units.first, sums);
        settle(action, part);
    } else {
        tensor.store(units.first, sums);
    }
}

void HostDriver::settle(const protocol::HostAction& action, const Part& part) {
    if (part.span == 0) return;
    tensor::Slice& tensor = part.work->slices().front();
    const UnitRange units = units_of(part, action.chunk);
    const std::span<const float> magnitudes = memory_->magnitudes_of(action.slot);
    for (std::uint64_t at = 0; at < units.count; at += part.span) {
        tensor.settle(units.first + at, std::min<std::uint64_t>(part.span, units.count - at),
                      magnitudes.subspan(at / part.cell));
    }
}

}  // namespace atp::comm
