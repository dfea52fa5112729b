// SPDX-License-Identifier: Apache-2.0
#include "switchml/worker.h"

#include <algorithm>
#include <cassert>

#include "numeric/lanes32_sums.h"
#include "protocol/sequence.h"
#include "switchml/half_lanes.h"

namespace atp::switchml {

using switchml::header_bytes;
using switchml::int32_lane_bytes;

Worker::Worker(const WorkerConfig& config)
    : config_(config),
      slots_(config.job.slots()),
      operations_(config.tensors, config.job.first_offset),
      overflowed_(config.tensors),
      integers_(config.job.lanes * int32_lane_bytes),
      floats_(config.job.lanes * int32_lane_bytes),
      to_send_(config.job.slots()),
      unready_(config.job.slots()),
      in_flight_(config.job.slots()) {
    assert(config.job.valid() && config.rank < config.job.workers);
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        const std::uint32_t offset = config.job.first_offset + i;
        slots_[config.job.slot(offset)].offset = offset;
    }
}

void Worker::set_job(std::uint8_t job) {
    assert(operations_.end() == 0);
    config_.job.job = job;
}

std::optional<std::uint64_t> Worker::submit(protocol::Tensor& tensor, Time now, Time deadline) {
    constexpr std::uint64_t most_outstanding = 1U << 30U;  // far below the range at which offsets wrap around
    const protocol::FragmentCut cut(tensor.size(), config_.job.lanes, {});
    const std::uint64_t fragments = cut.fragments();
    if (failed_ || fragments == 0 || (config_.job.halves && tensor.plain())) return std::nullopt;
    if (fragments + operations_.fragments() > most_outstanding) return std::nullopt;
    const std::uint32_t first = operations_.end_seq();
    const auto number = operations_.push(tensor, cut, now, deadline);
    if (!number) return std::nullopt;
    overflowed(*number) = 0;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        const std::uint32_t slot = config_.job.slot(first + i);
        if (slots_[slot].offset == first + i) queue_if_there(slot);
    }
    return number;
}

void Worker::queue_if_there(std::uint32_t slot) {
    if (protocol::before(slots_[slot].offset, operations_.end_seq())) to_send_.push(slot);
}

void Worker::handle_packet(std::span<std::byte> bytes, bool /*congested*/, Time now) {
    switchml::Packet packet;
    if (failed_) return;
    if (switchml::decode(bytes, packet) != switchml::DecodeError::none) {
        ++counters_.refused;
        return;
    }
    const switchml::Header& header = packet.header;
    if (header.job != config_.job.job || !header.result()) {
        ++counters_.forged;
        return;
    }
    if (header.halves() != config_.job.halves || bytes.size() != packet_bytes() || header.slot >= slots_.size()) {
        ++counters_.refused;
        return;
    }
    answered_ = true;
    answered_at_ = now;
    handle_result(packet);
}

void Worker::handle_result(const switchml::Packet& packet) {
    const std::uint32_t number = packet.header.slot;
    Slot& slot = slots_[number];
    if (!slot.sent || slot.offset != packet.header.offset) {
        ++counters_.stale_results;
        return;
    }
    ++counters_.results;
    const std::uint64_t operation = operations_.find(slot.offset);
    if (packet.header.overflowed()) ++counters_.overflowed;
    const bool fits = store(operations_[operation], slot.offset, packet.lanes);
    if (packet.header.overflowed() || !fits) overflowed(operation) = 1;
    operations_.complete_fragment(operation);
    in_flight_.remove(number);
    to_send_.remove(number);
    slot = {.offset = slot.offset + config_.job.slots(), .sent = false, .sent_at = {}};
    queue_if_there(number);
}

bool Worker::store(const Entry& owner, std::uint32_t offset, std::span<const std::byte> lanes) {
    const auto [first, elements] = owner.range(offset);
    const std::byte* integers = lanes.data();
    bool fits = true;
    if (config_.job.halves) {
        fits = switchml::halves_to_lanes(lanes.data(), elements, integers_.data());
        integers = integers_.data();
    }
    const std::size_t bytes = elements * int32_lane_bytes;
    if (owner.tensor->plain()) {
        owner.tensor->store(first, {integers, bytes});
        return fits;
    }
    numeric::lanes_to_floats(integers, elements, 1 / config_.scale, floats_.data());
    owner.tensor->store(first, std::span(floats_).first(bytes));
    return fits;
}

// All packets have equal length (§3.6): zeros follow the last element of a tensor. False if an element does not fit.
bool Worker::load(const Entry& owner, std::uint32_t offset, std::span<std::byte> lanes) {
    const auto [first, elements] = owner.range(offset);
    const std::span<std::byte> integers = config_.job.halves ? std::span(integers_) : lanes;
    const std::span<std::byte> used = integers.first(elements * int32_lane_bytes);
    bool fits = owner.tensor->load_integers(first, used);
    if (!fits) std::ranges::fill(used, std::byte{0});
    std::ranges::fill(integers.subspan(used.size()), std::byte{0});
    if (config_.job.halves) fits &= switchml::lanes_to_halves(integers.data(), config_.job.lanes, lanes.data());
    return fits;
}

Time Worker::poll_timeout() const {
    if (failed_ || idle()) return never;
    if (config_.job.mode == Mode::lossless || in_flight_.empty()) return operations_.deadline();
    return std::min(operations_.deadline(), slots_[in_flight_.front()].sent_at + config_.timeout);
}

void Worker::handle_timeout(Time now) {
    if (failed_ || idle()) return;
    if (now >= operations_.deadline()) {
        fail(now);
        return;
    }
    if (config_.job.mode == Mode::lossless) return;
    while (!in_flight_.empty() && slots_[in_flight_.front()].sent_at + config_.timeout <= now) {
        const std::uint32_t late = in_flight_.front();
        in_flight_.remove(late);
        to_send_.push(late);
    }
}

void Worker::fail(Time now) {
    failed_ = true;
    failed_at_ = now;
    to_send_.clear();
    unready_.clear();
    in_flight_.clear();
}

std::optional<WorkerEvent> Worker::poll_event() {
    if (idle()) return std::nullopt;
    const Entry& oldest = operations_[operations_.first()];
    if (oldest.missing != 0 && !failed_) return std::nullopt;
    WorkerEvent event{.tensor = operations_.pop(), .answered = answered_, .answered_at = answered_at_};
    if (oldest.missing != 0) {
        event.kind = WorkerEvent::Kind::timed_out;
        event.elapsed = failed_at_ - oldest.submitted_at;
    } else if (overflowed(event.tensor) != 0) {
        event.kind = WorkerEvent::Kind::overflowed;
    }
    return event;
}

// The next slot to send. Skips a slot whose elements cannot be read yet, so that other slots and resends are sent.
// Otherwise two workers could wait for each other.
std::optional<std::uint32_t> Worker::take_next() {
    const auto is_ready = [this](std::uint32_t slot) { return ready(slot); };
    while (!to_send_.empty()) {
        const std::uint32_t slot = to_send_.front();
        to_send_.remove(slot);
        if (is_ready(slot)) return slot;
        unready_.push(slot);
    }
    const std::optional<std::uint32_t> slot = unready_.find(is_ready);
    if (slot) unready_.remove(*slot);
    return slot;
}

bool Worker::ready(std::uint32_t slot) {
    const std::uint32_t offset = slots_[slot].offset;
    const Entry& owner = owner_of(offset);
    const auto [first, elements] = owner.range(offset);
    return owner.tensor->ready(first, elements);
}

std::optional<std::size_t> Worker::poll_transmit(std::span<std::byte> buffer, Time now) {
    if (failed_ || buffer.size() < packet_bytes()) return std::nullopt;
    const std::optional<std::uint32_t> next = take_next();
    if (!next) return std::nullopt;
    const std::uint32_t number = *next;
    in_flight_.push(number);
    Slot& slot = slots_[number];
    ++(slot.sent ? counters_.resent : counters_.sent);
    slot.sent = true;
    slot.sent_at = now;

    const JobConfig& job = config_.job;
    const bool fits =
        load(owner_of(slot.offset), slot.offset, buffer.subspan(header_bytes, packet_bytes() - header_bytes));
    if (!fits) ++counters_.misfit_fragments;
    const unsigned version = job.version(slot.offset) != 0 ? unsigned{switchml::flag_version} : 0U;
    const unsigned halves = job.halves ? unsigned{switchml::flag_halves} : 0U;
    const unsigned overflow = fits ? 0U : unsigned{switchml::flag_overflow};
    switchml::encode_header({.flags = static_cast<std::uint8_t>(version | halves | overflow),
                             .job = job.job,
                             .worker = config_.rank,
                             .slot = static_cast<std::uint16_t>(number),
                             .offset = slot.offset},
                            buffer);
    return packet_bytes();
}

}  // namespace atp::switchml
