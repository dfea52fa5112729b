// SPDX-License-Identifier: Apache-2.0
#include "switchml/switch.h"

#include <algorithm>
#include <array>

#include "numeric/lanes32_switch.h"
#include "protocol/sequence.h"
#include "switchml/half_lanes.h"

namespace atp::switchml {

using switchml::DecodeError;
using switchml::int32_lane_bytes;

namespace {

constexpr std::array<std::string_view, event_count> event_names = {
    "gathered", "completed", "duplicate", "answered", "late", "ahead", "misfit", "forged", "refused"};

}  // namespace

std::string_view to_string(Event event) { return event_names.at(static_cast<std::size_t>(event)); }

Switch::Switch(const SwitchConfig& config)
    : config_(config),
      copies_(2 * std::size_t{config.slots}),
      lanes_(copies_.size() * config.lanes),
      integers_(config.lanes * int32_lane_bytes) {}

bool Switch::admit(const JobConfig& config) {
    std::optional<Job>& place = jobs_[config.job];
    if (place) return place->config == config;
    if (!config.valid() || config.lanes > config_.lanes) return false;
    const std::optional<std::uint32_t> first = room_for(config.slots());
    if (!first) return false;
    place = Job{.config = config, .first_slot = *first, .counters = {}};
    reset(*place);
    return true;
}

void Switch::dismiss(std::uint8_t job) { jobs_[job].reset(); }

// The first range of `slots` consecutive slots that no job uses.
std::optional<std::uint32_t> Switch::room_for(std::uint32_t slots) const {
    std::uint32_t first = 0;
    while (slots <= config_.slots && first <= config_.slots - slots) {
        const auto blocking = std::ranges::find_if(jobs_, [&](const std::optional<Job>& job) {
            return job && job->first_slot < first + slots && first < job->end_slot();
        });
        if (blocking == jobs_.end()) return first;
        first = (*blocking)->end_slot();
    }
    return std::nullopt;
}

std::uint32_t Switch::free_slots() const {
    std::uint32_t free = config_.slots;
    for (const std::optional<Job>& job : jobs_) free -= job ? job->config.slots() : 0;
    return free;
}

// Sets each copy of the job's slots as if the fragment before the copy's first fragment were complete.
void Switch::reset(const Job& job) {
    const JobConfig& config = job.config;
    const std::uint32_t copies = 2 * config.slots();
    for (std::uint32_t i = 0; i < copies; ++i) {
        const std::uint32_t offset = config.first_offset + i;
        Copy& copy = copies_[index_of(job, config.slot(offset), offset >> config.slots_log2 & 1U)];
        copy = {.seen = 0, .offset = offset - copies, .gathered = 0, .overflowed = false};
        std::ranges::fill(lanes_of(copy), 0);
    }
}

void Switch::clear() {
    for (const std::optional<Job>& job : jobs_) {
        if (job) reset(*job);
    }
}

const SwitchCounters* Switch::job_counters(std::uint8_t job) const {
    return jobs_[job] ? &jobs_[job]->counters : nullptr;
}

const JobConfig* Switch::job_config(std::uint8_t job) const { return jobs_[job] ? &jobs_[job]->config : nullptr; }

Verdict Switch::handle_packet(std::span<std::byte> bytes) {
    Packet packet;
    const DecodeError error = switchml::decode(bytes, packet);
    if (error != DecodeError::none) {
        ++counters_.refused[static_cast<std::size_t>(error)];
        ++counters_.events[static_cast<std::size_t>(Event::refused)];
        return {.event = Event::refused};
    }
    std::optional<Job>& job = jobs_[packet.header.job];
    if (!job) {
        ++counters_.events[static_cast<std::size_t>(Event::forged)];
        return {.event = Event::forged};
    }
    const Verdict verdict = assess(*job, packet);
    count(*job, verdict.event);
    if (verdict.route != Route::drop) switchml::encode_header(packet.header, bytes);
    return verdict;
}

void Switch::count(Job& job, Event event) {
    ++counters_.events[static_cast<std::size_t>(event)];
    ++job.counters.events[static_cast<std::size_t>(event)];
}

// Whether a worker of this job may have sent the packet.
bool Switch::fits(const JobConfig& config, const Packet& packet) {
    const switchml::Header& header = packet.header;
    if (header.result() || header.halves() != config.halves || packet.lane_count() != config.lanes) return false;
    if (header.worker >= config.workers || header.slot >= config.slots()) return false;
    if (config.mode == Mode::lossless) return header.version() == 0;
    if (config.mode == Mode::faithful) return true;
    return header.slot == config.slot(header.offset) && header.version() == config.version(header.offset);
}

Verdict Switch::assess(Job& job, Packet& packet) {
    Verdict verdict{.route = Route::drop, .job = job.config.job, .worker = packet.header.worker};
    if (!fits(job.config, packet)) {
        verdict.event = Event::misfit;
        return verdict;
    }
    Copy& copy = copy_of(job, packet);
    switch (standing(job.config, packet, copy, copy_of(job, packet, true))) {
        case Standing::absent: return gather(job, packet);
        case Standing::late: verdict.event = Event::late; return verdict;
        case Standing::ahead: verdict.event = Event::ahead; return verdict;
        case Standing::present: break;
    }
    verdict.event = copy.complete() ? Event::answered : Event::duplicate;
    if (!copy.complete()) return verdict;
    emit(job, packet, copy);
    verdict.route = Route::worker;
    return verdict;
}

Switch::Standing Switch::standing(const JobConfig& config, const Packet& packet, const Copy& copy, const Copy& other) {
    const bool seen = (copy.seen & bit_of(packet)) != 0;
    if (config.mode == Mode::lossless) return Standing::absent;
    if (config.mode == Mode::faithful) return seen ? Standing::present : Standing::absent;
    const std::uint32_t offset = packet.header.offset;
    if (protocol::before(offset, copy.offset))
        return Standing::late;  // a version bit alone would accept it (H37, docs/spec/hazards.md#h37)
    if (offset == copy.offset) return seen || copy.complete() ? Standing::present : Standing::absent;
    // The sender has the result of the other copy, one phase earlier: every worker has sent its packet of that phase. A
    // worker does so only after it received the result of this copy, which may therefore be overwritten now.
    const bool next = offset == copy.offset + 2 * config.slots() && offset == other.offset + config.slots();
    return next && other.complete() ? Standing::absent : Standing::ahead;
}

// Algorithm 3, lines 6 to 17. In mode lossless: Algorithm 1.
Verdict Switch::gather(Job& job, Packet& packet) {
    Copy& copy = copy_of(job, packet);
    if (job.config.mode != Mode::lossless) {
        copy.seen |= bit_of(packet);
        copy_of(job, packet, true).seen &= ~bit_of(packet);
    }
    add(job, packet, copy);
    copy.gathered = static_cast<std::uint8_t>((copy.gathered + 1U) % job.config.workers);
    Verdict verdict{
        .route = Route::drop, .event = Event::gathered, .job = job.config.job, .worker = packet.header.worker};
    if (!copy.complete()) return verdict;
    emit(job, packet, copy);
    verdict.event = Event::completed;
    verdict.route = Route::everybody;
    return verdict;
}

// The first packet of a fragment overwrites the sum of the fragment two phases earlier.
void Switch::add(Job& job, const Packet& packet, Copy& copy) {
    const bool first = copy.gathered == 0;
    const std::size_t lanes = job.config.lanes;
    const std::byte* integers = packet.lanes.data();
    bool overflow = packet.header.overflowed();
    if (job.config.halves) {
        overflow |= !switchml::halves_to_lanes(packet.lanes.data(), lanes, integers_.data());
        integers = integers_.data();
    }
    if (first) {
        copy.offset = packet.header.offset;
        copy.overflowed = false;
        numeric::lanes_store(integers, lanes, lanes_of(copy).data());
    } else {
        overflow |= numeric::lanes_add(integers, lanes, lanes_of(copy).data());
    }
    copy.overflowed |= overflow;
    counters_.overflows += overflow ? 1U : 0U;
    job.counters.overflows += overflow ? 1U : 0U;
}

// Turns the packet into the result.
void Switch::emit(const Job& job, Packet& packet, Copy& copy) {
    std::byte* const lanes = packet.lanes.data();
    if (job.config.halves) {
        numeric::lanes_emit(lanes_of(copy).data(), job.config.lanes, integers_.data());
        copy.overflowed |= !switchml::lanes_to_halves(integers_.data(), job.config.lanes, lanes);
    } else {
        numeric::lanes_emit(lanes_of(copy).data(), job.config.lanes, lanes);
    }
    using namespace atp::switchml;
    const unsigned kept = packet.header.flags & (flag_version | flag_halves);
    const unsigned overflow = copy.overflowed ? unsigned{flag_overflow} : 0U;
    packet.header.flags = static_cast<std::uint8_t>(kept | flag_result | overflow);
}

}  // namespace atp::switchml
