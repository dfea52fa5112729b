// SPDX-License-Identifier: Apache-2.0
#include "protocol/switch.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "numeric/lanes32_switch.h"
#include "numeric/narrow_lanes.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

constexpr std::size_t cache_line_bytes = 64;
// Packets decoded before the first of them is added, so that their aggregators are prefetched in the meantime.
constexpr std::size_t batch_packets = 16;

std::size_t lane_stride(std::uint32_t lanes) {
    constexpr std::size_t step = cache_line_bytes / ATP_LANE_BYTES;
    return (lanes + step - 1) / step * step;
}

std::uint32_t microseconds(Time now) { return static_cast<std::uint32_t>(now.time_since_epoch().count() / 1000); }

std::uint32_t clamp_to_u31(std::int64_t value) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, 0x7fffffff));
}

// A packet that has just arrived is rarely in a cache.
void prefetch_packet(const PacketBuffer& packet_buffer) {
    constexpr std::uint32_t enough_bytes = 1024;  // beyond this the hardware prefetcher follows the pattern
    for (std::uint32_t at = 0; at < packet_buffer.size && at < enough_bytes; at += cache_line_bytes) {
        __builtin_prefetch(packet_buffer.data + at);
    }
}

// The audit lane and the proof words are defined modulo 2^32.
std::int32_t wrapping_sum(std::int32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + b);
}

// Lanes behind those that carry elements: the audit lane or the proof words.
std::size_t tail_lanes(const atp_header& header) {
    if ((header.flags & ATP_FLAG_PROOF) != 0) return ATP_PROOF_LANES;
    return (header.flags & ATP_FLAG_AUDIT) != 0 ? 1 : 0;
}

bool emits(std::uint8_t action) { return action == ATP_LANES_ADD_EMIT || action == ATP_LANES_EMIT; }

// True if an addition exceeded 32 bits.
bool move_integers(std::byte* wire_lanes, std::size_t count, std::uint8_t action, std::int32_t* lanes) {
    switch (action) {
        case ATP_LANES_STORE: numeric::lanes_store(wire_lanes, count, lanes); return false;
        case ATP_LANES_ADD: return numeric::lanes_add(wire_lanes, count, lanes);
        case ATP_LANES_ADD_EMIT: return numeric::lanes_add_emit(wire_lanes, count, lanes);
        default: numeric::lanes_emit(lanes, count, wire_lanes); return false;
    }
}

// True if an addition exceeded the width of `type`. Narrow lanes are stored as in packets.
bool move_narrow(std::uint8_t type, std::byte* wire_lanes, std::size_t count, std::uint8_t action,
                 std::int32_t* lanes) {
    const auto add = type == ATP_DTYPE_INT8 ? numeric::int8_lanes().add : numeric::int16_lanes().add;
    auto* held = reinterpret_cast<std::byte*>(lanes);
    const std::size_t bytes = count * ATP_LANE_BYTES;
    bool overflowed = false;
    if (action == ATP_LANES_STORE) {
        std::memcpy(held, wire_lanes, bytes);
    } else if (action != ATP_LANES_EMIT) {
        overflowed = add(wire_lanes, count * atp_elements_per_word(type), held);
    }
    if (emits(action)) std::memcpy(wire_lanes, held, bytes);
    return overflowed;
}

}  // namespace

void Switch::FreeLanes::operator()(std::int32_t* lanes) const { std::free(lanes); }

Switch::Switch(const SwitchConfig& config)
    : config_(config),
      table_(config.aggregators),
      lane_stride_(lane_stride(config.lanes)),
      lanes_(static_cast<std::int32_t*>(std::aligned_alloc(
          cache_line_bytes,
          std::max<std::size_t>(table_.size() * lane_stride_ * sizeof(std::int32_t), cache_line_bytes)))),
      jobs_(std::bit_ceil(std::size_t{2} * config.jobs)) {
    if (lanes_ == nullptr) throw std::bad_alloc();
    std::fill_n(lanes_.get(), table_.size() * lane_stride_, 0);
}

bool Switch::admit(std::uint32_t job, std::uint64_t token, std::uint8_t level) {
    if (token == 0) return false;
    if (const Job* known = find_job(job, token)) return known->level == level;
    const auto used = std::ranges::count_if(jobs_, [](const Job& entry) { return entry.token != 0; });
    if (static_cast<std::uint32_t>(used) >= config_.jobs) return false;
    std::size_t at = mix(job) & (jobs_.size() - 1);
    while (jobs_[at].token != 0) at = (at + 1) & (jobs_.size() - 1);
    jobs_[at] = Job{.token = token, .job = job, .level = level, .counters = {}};
    jobs_[at].slice.now.size = config_.aggregators;
    last_ = nullptr;
    return true;
}

void Switch::dismiss(std::uint32_t job, std::uint64_t token) {
    // The removed entry may have displaced later ones: insert all others again.
    std::vector<Job> others;
    for (const Job& entry : jobs_) {
        if (entry.token != 0 && (entry.job != job || entry.token != token)) others.push_back(entry);
    }
    std::ranges::fill(jobs_, Job{});
    last_ = nullptr;
    for (const Job& entry : others) {
        std::size_t at = mix(entry.job) & (jobs_.size() - 1);
        while (jobs_[at].token != 0) at = (at + 1) & (jobs_.size() - 1);
        jobs_[at] = entry;
    }
}

void Switch::set_slice(std::uint32_t job, std::uint64_t token, const atp_range& slice, std::uint32_t weight) {
    Job* const entry = find_job(job, token);
    if (entry == nullptr) return;
    const bool changes = atp_slice_set(&entry->slice, slice, weight, 0) != 0;
    if (changes && ATP_BREAK(recall_evicts)) {
        for (std::uint32_t at = entry->slice.before.base; at < entry->slice.before.base + entry->slice.before.size;
             ++at)
            table_[at].status = ATP_AGGREGATOR_FREE;
    }
}

void Switch::end_changes() {
    for (Job& job : jobs_) atp_slice_end_change(&job.slice);
}

std::uint32_t Switch::held_by(std::uint32_t job, std::uint64_t token) const {
    const Job* entry = find_job(job, token);
    return entry == nullptr ? 0 : entry->held;
}

const atp_slice* Switch::slice_of(std::uint32_t job, std::uint64_t token) const {
    const Job* entry = find_job(job, token);
    return entry == nullptr ? nullptr : &entry->slice;
}

std::optional<std::uint32_t> Switch::place_of(const atp_header& header) const {
    const Job* entry = find_job(header.job, header.token);
    if (entry == nullptr || header.index >= config_.aggregators) return std::nullopt;
    std::uint32_t size = 0;
    atp_slice slice = entry->slice;
    const std::uint32_t place = atp_slice_index(&slice, &header, &size);
    return size == 0 ? std::nullopt : std::optional(place);
}

void Switch::clear() {
    std::ranges::fill(table_, atp_aggregator{});
    for (Job& job : jobs_) job.held = 0;
}

const SwitchCounters* Switch::job_counters(std::uint32_t job, std::uint64_t token) const {
    const Job* entry = find_job(job, token);
    return entry == nullptr ? nullptr : &entry->counters;
}

std::uint32_t Switch::occupied() const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(table_, [](const atp_aggregator& a) { return a.status != ATP_AGGREGATOR_FREE; }));
}

// Incarnations of one job are neighbours in the table.
const Switch::Job* Switch::find_job(std::uint32_t job, std::uint64_t token) const {
    for (std::size_t at = mix(job) & (jobs_.size() - 1); jobs_[at].token != 0; at = (at + 1) & (jobs_.size() - 1)) {
        if (jobs_[at].job == job && (jobs_[at].token == token || ATP_BREAK(ignore_token))) return &jobs_[at];
    }
    return nullptr;
}

Switch::Job* Switch::find_job(std::uint32_t job, std::uint64_t token) {
    return const_cast<Job*>(static_cast<const Switch*>(this)->find_job(job, token));
}

void Switch::handle_packet(PacketBuffer& packet_buffer, Time now) {
    Received received;
    receive(packet_buffer, received);
    if (received.job != nullptr) decide(packet_buffer, received, now);
}

void Switch::handle_batch(std::span<PacketBuffer> packet_buffers, Time now) {
    if (packet_buffers.size() == 1) return handle_packet(packet_buffers.front(), now);
    std::array<Received, batch_packets> received;
    for (const PacketBuffer& first : packet_buffers.first(std::min(packet_buffers.size(), batch_packets))) {
        prefetch_packet(first);
    }
    while (!packet_buffers.empty()) {
        const std::span<PacketBuffer> batch = packet_buffers.first(std::min(packet_buffers.size(), batch_packets));
        for (std::size_t i = 0; i < batch.size(); ++i) receive(batch[i], received[i]);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            // Prefetches the next batch while this one is added.
            if (batch.size() + i < packet_buffers.size()) prefetch_packet(packet_buffers[batch.size() + i]);
            if (received[i].job != nullptr) decide(batch[i], received[i], now);
        }
        packet_buffers = packet_buffers.subspan(batch.size());
    }
}

// Decodes the packet, checks its job, finds the aggregator and prefetches it. Without a job, the packet is dropped.
void Switch::receive(PacketBuffer& packet_buffer, Received& received) {
    wire::Packet& packet = received.packet;
    received.job = nullptr;
    packet_buffer.verdict = Verdict{};
    const wire::DecodeError error = wire::decode({packet_buffer.data, packet_buffer.size}, packet);
    if (error != wire::DecodeError::none) {
        ++counters_.refused[static_cast<std::size_t>(error)];
        return;
    }
    Job* job = last_;
    if (job == nullptr || job->job != packet.header.job || job->token != packet.header.token) {
        job = find_job(packet.header.job, packet.header.token);
        if (job == nullptr) {
            ++counters_.forged;
            return;
        }
        last_ = job;
    }
    packet_buffer.verdict.job = job->job;
    if (packet_buffer.is_stranger) {
        ++counters_.strangers;
        ++job->counters.strangers;
        return;
    }
    received.job = job;
    if (packet_buffer.congested) {
        // An ACK keeps the mark in its IP header. A flag would reach only the workers behind this link, but the windows
        // of all workers must stay equal. These workers report the mark with their next gradients (H32,
        // docs/spec/hazards.md#h32).
        if (packet.header.type == ATP_TYPE_GRADIENT) packet.header.flags |= ATP_FLAG_ECN;
        ++counters_.ecn;
        ++job->counters.ecn;
    }
    find_place(received);
}

void Switch::find_place(Received& received) {
    received.place = no_place;
    const wire::Packet& packet = received.packet;
    if (packet.header.index >= config_.aggregators) return;
    std::uint32_t size = 0;
    const std::uint32_t place = atp_slice_index(&received.job->slice, &packet.header, &size);
    if (size == 0) return;
    received.place = place;
    const atp_aggregator* aggregator = &table_[place];
    __builtin_prefetch(aggregator, 1);
    __builtin_prefetch(&aggregator->touched_us, 1);  // may be in the next cache line
    const std::int32_t* lanes = lanes_of(place).data();
    for (std::size_t lane = 0; lane < packet.lane_count() && lane < config_.lanes; lane += 16) {
        __builtin_prefetch(lanes + lane, 1);
    }
}

void Switch::decide(PacketBuffer& packet_buffer, Received& received, Time now) {
    wire::Packet& packet = received.packet;
    Job& job = *received.job;
    const std::uint32_t place = received.place;
    atp_header& header = packet.header;
    // Sums of other switches belong to the next level, if any. Here they would wait for units whose packets never pass.
    // A switch of level 2 aggregates nothing.
    const bool crosses = header.type == ATP_TYPE_GRADIENT && header.hop > job.level;
    if (crosses || job.level >= ATP_LEVELS) {
        finish(packet_buffer, packet, atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED), job);
        return;
    }
    if (place == no_place || packet.lane_count() > config_.lanes) {
        pass_without_aggregator(packet_buffer, packet, job);
        return;
    }
    const bool flush_here = header.type == ATP_TYPE_FLUSH && header.hop == job.level;
    if (flush_here && flush_needs(place) > packet_buffer.capacity) {
        ++counters_.no_room;
        ++job.counters.no_room;
        return;
    }
    atp_aggregator& aggregator = table_[place];
    const std::uint32_t contribution = atp_contribution(&header);
    const atp_aggregator before = aggregator;
    const atp_decision decision =
        atp_decide(&header, static_cast<std::uint16_t>(packet.lane_count()), flush_here ? 1 : 0, &aggregator,
                   microseconds(now), clamp_to_u31(config_.ageing.count() / 1000));
    if (job.slice.is_shared != 0) count_held(before, aggregator);
    if (decision.event == ATP_EVENT_COMPLETED) {
        packet_buffer.verdict.completed_by = contribution;
        packet_buffer.verdict.alone_us = microseconds(now) - before.touched_us;
    }
    if (decision.packet == ATP_PACKET_RETURN) {
        packet_buffer.size = static_cast<std::uint32_t>(ATP_HEADER_BYTES + aggregator.lanes * ATP_LANE_BYTES);
        packet.lanes = {packet_buffer.data + ATP_HEADER_BYTES, std::size_t{aggregator.lanes} * ATP_LANE_BYTES};
    }
    if (decision.lanes != ATP_LANES_NONE && move_lanes(packet, decision.lanes, place)) {
        ++counters_.overflows;
        ++job.counters.overflows;
        atp_overflowed(&header, decision, &aggregator);
    }
    finish(packet_buffer, packet, decision, job);
}

// The holder of before may be a job that has ended, or of another tenant whose aggregator was abandoned.
void Switch::count_held(const atp_aggregator& before, const atp_aggregator& after) {
    const bool was_held = before.status != ATP_AGGREGATOR_FREE;
    const bool is_held = after.status != ATP_AGGREGATOR_FREE;
    if (was_held == is_held && before.job == after.job && before.token == after.token) return;
    if (Job* const holder = was_held ? find_job(before.job, before.token) : nullptr) {
        if (holder->held != 0) --holder->held;
    }
    if (Job* const holder = is_held ? find_job(after.job, after.token) : nullptr) ++holder->held;
}

// Length of the packet that the FLUSH becomes, in bytes.
std::uint32_t Switch::flush_needs(std::uint32_t place) const {
    return ATP_HEADER_BYTES + table_[place].lanes * ATP_LANE_BYTES;
}

// For an index or a number of lanes beyond this table, and for a job whose slice is empty: forwards a gradient alone,
// absorbs a FLUSH of this level, and forwards any other packet unchanged.
void Switch::pass_without_aggregator(PacketBuffer& packet_buffer, wire::Packet& packet, Job& job) {
    const bool flush_here = packet.header.type == ATP_TYPE_FLUSH && packet.header.hop == job.level;
    atp_decision decision =
        atp_decision_of(flush_here ? ATP_PACKET_DROP : ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
    const bool already_alone = (packet.header.flags & ATP_FLAG_BYPASS) != 0 || packet.header.hop >= ATP_LEVELS;
    if (packet.header.type == ATP_TYPE_GRADIENT && !already_alone) {
        decision = atp_forward_alone(&packet.header, ATP_EVENT_MISFIT);
    }
    finish(packet_buffer, packet, decision, job);
}

// True if an addition overflowed.
bool Switch::move_lanes(const wire::Packet& packet, std::uint8_t action, std::uint32_t place) {
    const std::size_t tail = tail_lanes(packet.header);
    const std::size_t count = packet.lane_count() - tail;
    std::int32_t* lanes = lanes_of(place).data();
    std::byte* wire_lanes = packet.lanes.data();
    const std::uint8_t type = atp_lanes_type(&packet.header);
    const bool overflowed = type == ATP_DTYPE_INT32 ? move_integers(wire_lanes, count, action, lanes)
                                                    : move_narrow(type, wire_lanes, count, action, lanes);
    for (std::size_t at = count; at < count + tail; ++at) {
        std::byte* word = wire_lanes + at * ATP_LANE_BYTES;
        const std::int32_t held = action == ATP_LANES_STORE ? 0 : lanes[at];
        if (action != ATP_LANES_EMIT) lanes[at] = wrapping_sum(held, wire::load_u32(word));
        if (emits(action)) wire::store_u32(word, static_cast<std::uint32_t>(lanes[at]));
    }
    return overflowed;
}

void Switch::finish(PacketBuffer& packet_buffer, const wire::Packet& packet, atp_decision decision, Job& job) {
    ++counters_.events[decision.event];
    ++job.counters.events[decision.event];
    Verdict& verdict = packet_buffer.verdict;
    verdict.event = decision.event;
    if (decision.packet == ATP_PACKET_DROP) return;
    const atp_header& header = packet.header;
    wire::encode_header(header, {packet_buffer.data, packet_buffer.size});
    verdict.route = wire::goes_up(header.type) ? Route::up : Route::down;
    verdict.worker = header.worker;
    verdict.units = header.bitmap1;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
