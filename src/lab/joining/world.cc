// SPDX-License-Identifier: Apache-2.0
#include "joining/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "endpoint/hosted_server.h"
#include "wire/control.h"
#include "wire/packet.h"

namespace atp::joining {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t world_stream = 0x6a05;
constexpr std::uint32_t first_job = 100;
constexpr Duration latest_progress = std::chrono::seconds(3);
// A launcher starts the processes of a job that failed again.
constexpr Duration time_to_restart = milliseconds(300);
constexpr std::uint64_t most_steps = 2'000'000;

std::shared_ptr<const protocol::Membership> membership_of(const JoinScenario& s) {
    auto membership =
        s.leaves == 0 ? protocol::Membership::star(s.ranks) : protocol::Membership::racks(s.leaves, s.ranks);
    return std::make_shared<const protocol::Membership>(*std::move(membership));
}

std::string text_of(const Flight& flight) {
    const std::span<const std::byte> bytes = flight.bytes;
    std::string text = flight.is_report ? "report of " : "";
    if (const auto joined = wire::decode_joined(bytes)) {
        text += fmt::format("JOINED token={} epoch={} number={} ready={} missing={:#x}/{:#x} edges={}", joined->token,
                            joined->epoch, joined->number, joined->ready, joined->missing_units,
                            joined->missing_members, joined->edges.size());
    } else if (const auto join = wire::decode_join(bytes)) {
        text += fmt::format("JOIN token={} epoch={} level={} begun={} cookie={} edges={}", join->terms.token,
                            join->epoch, join->level, join->begun, join->cookie != 0, join->edges.size());
    } else if (const auto type = wire::control_type(bytes)) {
        text += wire::to_string(*type);
    } else if (bytes.size() >= ATP_HEADER_BYTES) {
        text += fmt::format("packet of type {}", wire::load_u8(bytes.data() + ATP_OFFSET_TYPE));
    }
    return fmt::format("{} -> {} {}", to_string(flight.from), to_string(flight.to), text);
}

}  // namespace

World::World(const JoinScenario& scenario, std::FILE* log)
    : scenario_(scenario),
      truth_(scenario_),
      log_(log),
      random_(scenario.seed, world_stream),
      network_({.seed = scenario.seed,
                .loss = scenario.loss,
                .duplicates = scenario.duplicates,
                .longest_delay = scenario.longest_delay,
                .limits_reports = scenario.limits_reports}),
      membership_(membership_of(scenario)),
      jobs_(scenario.jobs),
      switches_(scenario.switches()) {
    report_.scenario = scenario;
    for (unsigned number = 0; number < switches_.size(); ++number) start_switch(number);
    for (Job& job : jobs_) {
        job.ranks.resize(scenario_.ranks_of_job());
        for (RankSlot& slot : job.ranks) {
            slot.starts_at =
                now_ + Duration(random_.below(static_cast<std::uint64_t>(scenario_.starts_within.count()) + 1));
        }
    }
    for (unsigned number = 0; number < switches_.size(); ++number) {
        places_[address_of_switch(number).with_port(0)] = {.is_switch = true, .number = number};
    }
    for (unsigned job = 0; job < jobs_.size(); ++job) {
        for (unsigned rank = 0; rank < jobs_[job].ranks.size(); ++rank) {
            places_[address_of_rank(job, rank, 0).with_port(0)] = {.job = job, .number = rank};
        }
    }
    if (scenario_.fault != Fault::none) fault_next_ = scenario_.fails_at;
}

// ---------------------------------------------------------------------------------------------------------- Processes

endpoint::ChannelMachineConfig World::config_of(unsigned job, unsigned rank) {
    const protocol::Place place = membership_->place(static_cast<std::uint16_t>(rank));
    endpoint::ChannelMachineConfig config;
    config.terms = {.job = first_job + job,
                    .token = 1 + jobs_[job].incarnation,
                    .channel = 0,
                    .lanes = 4,
                    .window_log2 = 3,
                    .aggregators = 64,
                    .mask1 = membership_->all_units(),
                    .scale = 1e6};
    config.unit = {.unit = place.unit,
                   .members = 1U << place.member,
                   .mask0 = place.mask0,
                   .ranks = {static_cast<std::uint16_t>(rank)}};
    config.worker.channel = endpoint::channel_config(config.terms);
    config.worker.rank = static_cast<std::uint16_t>(rank);
    config.worker.place = place;
    config.worker.senders = protocol::SenderMasks(*membership_, config.worker.rank);
    config.worker.scale = config.terms.scale;
    config.switch_address = address_of_switch(scenario_.switch_of(rank));
    config.nonce = random_.next();
    config.membership = membership_;
    return config;
}

void World::start_rank(unsigned job, unsigned rank) {
    RankSlot& slot = jobs_[job].ranks[rank];
    slot.starts_at = never;
    slot.seen = Rank::State::joining;
    slot.rank = std::make_unique<Rank>(config_of(job, rank), address_of_rank(job, rank, jobs_[job].incarnation));
    log_line(fmt::format("rank {} of job {} starts, incarnation {}", rank, job, jobs_[job].incarnation));
    slot.rank->handle_timeout(now_);
    slot.rank->transmit(network_, now_);
    slot.due = slot.rank->poll_timeout();
}

void World::start_switch(unsigned number) {
    const bool is_last = number == scenario_.root();
    switches_[number].machine = std::make_unique<Switch>(
        address_of_switch(number), is_last ? wire::Address{} : address_of_switch(scenario_.root()),
        scenario_.seed << 8U | boots_++);
}

// ------------------------------------------------------------------------------------------------------------- Faults

World::Process& World::victim() {
    const bool is_rank = scenario_.fault <= Fault::rank_cut_down;
    return is_rank ? jobs_[0].ranks[scenario_.victim].process : switches_[scenario_.victim].process;
}

void World::begin_fault() {
    faulty_ = true;
    fault_next_ = truth_.heals_at();
    log_line(fmt::format("fault: {} {}", name_of(scenario_.fault), scenario_.victim));
    const wire::Address own_switch = address_of_switch(scenario_.switch_of(scenario_.victim));
    const wire::Address rank = address_of_rank(0, scenario_.victim, 0);
    const wire::Address leaf = address_of_switch(scenario_.victim);
    const wire::Address root = address_of_switch(scenario_.root());
    const auto cut = [&](const wire::Address& below, const wire::Address& above, Fault up, Fault down) {
        if (scenario_.fault != down) network_.cut(below, above);
        if (scenario_.fault != up) network_.cut(above, below);
    };
    switch (scenario_.fault) {
        case Fault::none: break;
        case Fault::rank_leaves:
            jobs_[0].over = true;
            if (RankSlot& slot = jobs_[0].ranks[scenario_.victim]; slot.rank != nullptr) {
                slot.rank->finish();
                slot.due = slot.rank->poll_timeout();
            }
            break;
        case Fault::rank_cut:
        case Fault::rank_cut_up:
        case Fault::rank_cut_down: cut(rank, own_switch, Fault::rank_cut_up, Fault::rank_cut_down); break;
        case Fault::leaf_cut:
        case Fault::leaf_cut_up:
        case Fault::leaf_cut_down: cut(leaf, root, Fault::leaf_cut_up, Fault::leaf_cut_down); break;
        case Fault::rank_paused:
        case Fault::switch_paused: victim().status = Status::paused; break;
        case Fault::rank_killed:
        case Fault::rank_lost:
            victim().status = scenario_.fault == Fault::rank_killed ? Status::killed : Status::lost;
            jobs_[0].ranks[scenario_.victim].rank.reset();
            jobs_[0].ranks[scenario_.victim].due = never;
            break;
        case Fault::switch_killed:
        case Fault::switch_lost:
            victim().status = scenario_.fault == Fault::switch_killed ? Status::killed : Status::lost;
            switches_[scenario_.victim].machine.reset();
            switches_[scenario_.victim].due = never;
            break;
    }
}

void World::end_fault() {
    faulty_ = false;
    fault_next_ = never;
    log_line("the fault ends");
    network_.heal();
    Process& process = victim();
    const Status was = std::exchange(process.status, Status::runs);
    if (was == Status::paused) return resume();
    if (scenario_.fault == Fault::switch_killed || scenario_.fault == Fault::switch_lost)
        start_switch(scenario_.victim);
}

// The process reads what arrived meanwhile, after its own timers have run.
void World::resume() {
    Process& process = victim();
    std::vector<Flight> backlog = std::exchange(process.backlog, {});
    run_timers();
    for (Flight& flight : backlog) deliver(std::move(flight));
}

// -------------------------------------------------------------------------------------------------------------- Steps

void World::deliver(Flight flight) {
    if (log_ != nullptr) log_line(text_of(flight));
    const auto place = places_.find(flight.to.with_port(0));
    if (place == places_.end()) return;
    place->second.is_switch ? deliver_to_switch(place->second.number, std::move(flight))
                            : deliver_to_rank(place->second.job, place->second.number, std::move(flight));
}

void World::deliver_to_switch(unsigned number, Flight flight) {
    SwitchSlot& slot = switches_[number];
    if (slot.process.status == Status::paused) return slot.process.backlog.push_back(std::move(flight));
    if (slot.process.status == Status::killed && !flight.is_report) return network_.report(flight, now_);
    if (slot.machine == nullptr) return;
    flight.is_report ? slot.machine->handle_report(flight, network_, now_)
                     : slot.machine->handle_packet(flight, network_, now_);
    slot.due = slot.machine->poll_timeout();
}

void World::deliver_to_rank(unsigned job, unsigned rank, Flight flight) {
    RankSlot& slot = jobs_[job].ranks[rank];
    if (slot.process.status == Status::lost) return;
    if (slot.process.status == Status::paused) return slot.process.backlog.push_back(std::move(flight));
    if (slot.rank == nullptr || slot.rank->address() != flight.to) {
        if (!flight.is_report) network_.report(flight, now_);
        return;
    }
    flight.is_report ? slot.rank->handle_report(flight, now_) : slot.rank->handle_packet(flight, now_);
    slot.rank->transmit(network_, now_);
    slot.due = slot.rank->poll_timeout();
    note(job, rank);
}

void World::run_timers() {
    for (SwitchSlot& slot : switches_) {
        if (slot.due > now_ || slot.process.status != Status::runs) continue;
        slot.machine->handle_timeout(network_, now_);
        slot.due = slot.machine->poll_timeout();
    }
    for (unsigned job = 0; job < jobs_.size(); ++job) {
        for (unsigned rank = 0; rank < jobs_[job].ranks.size(); ++rank) {
            RankSlot& slot = jobs_[job].ranks[rank];
            if (slot.process.status != Status::runs) continue;
            if (slot.starts_at <= now_) start_rank(job, rank);
            if (slot.due > now_) continue;
            slot.rank->handle_timeout(now_);
            slot.rank->transmit(network_, now_);
            slot.due = slot.rank->poll_timeout();
            note(job, rank);
        }
    }
}

Time World::next_event() const {
    Time next = std::min(network_.next(), fault_next_);
    for (const SwitchSlot& slot : switches_) {
        if (slot.process.status == Status::runs) next = std::min(next, slot.due);
    }
    for (const Job& job : jobs_) {
        for (const RankSlot& slot : job.ranks) {
            if (slot.process.status == Status::runs) next = std::min({next, slot.starts_at, slot.due});
        }
    }
    return next;
}

void World::step() {
    now_ = std::max(now_, next_event());
    if (fault_next_ <= now_) {
        faulty_ ? end_fault() : begin_fault();
    } else if (network_.next() <= now_) {
        deliver(network_.take());
    } else {
        run_timers();
    }
    form_again();
}

JoinReport World::run() {
    std::uint64_t steps = 0;
    while (next_event() < truth_.ends_at() && report_.failures.empty() && ++steps < most_steps) step();
    if (steps == most_steps) fail("packets or timers multiply");
    now_ = truth_.ends_at();
    if (report_.failures.empty()) check_end();
    report_.packets = network_.sent();
    return report_;
}

// -------------------------------------------------------------------------------------------------------------- Checks

void World::note(unsigned job, unsigned rank) {
    RankSlot& slot = jobs_[job].ranks[rank];
    if (slot.rank->summed_wrongly()) fail(fmt::format("rank {} of job {} has a wrong sum", rank, job));
    if (slot.seen == slot.rank->state()) return;
    const Rank::State before = std::exchange(slot.seen, slot.rank->state());
    if (before == Rank::State::joining && slot.rank->was_ready()) note_ready(job, rank);
    if (slot.seen == Rank::State::failed) note_failure(job, rank);
    if (slot.seen == Rank::State::left) log_line(fmt::format("rank {} of job {} leaves", rank, job));
}

void World::note_ready(unsigned job, unsigned rank) {
    log_line(fmt::format("rank {} of job {} is ready", rank, job));
    for (const RankSlot& other : jobs_[job].ranks) {
        if (other.starts_at != never)
            fail(fmt::format("rank {} of job {} is ready before all ranks started", rank, job));
    }
    if (rank == 0) ++report_.incarnations;
}

void World::note_failure(unsigned job, unsigned rank) {
    const Error& error = jobs_[job].ranks[rank].rank->error();
    log_line(fmt::format("rank {} of job {} fails: {}", rank, job, to_string(error)));
    ++report_.errors;
    if (const auto objection = truth_.objection_to(job, error, now_)) {
        fail(fmt::format("at {:.0f} ms rank {} of job {} names {}, but {}: {}",
                         to_milliseconds(now_.time_since_epoch()), rank, job,
                         error.peer.empty() ? "no peer" : error.peer, *objection, to_string(error)));
    }
}

// When no rank of a failed job goes on, and what failed is repaired, its processes start again.
void World::form_again() {
    if (faulty_ || scenario_.fault == Fault::none) return;
    for (Job& job : jobs_) {
        const auto failed = [](const RankSlot& slot) {
            return slot.rank == nullptr ? slot.starts_at == never : slot.rank->state() == Rank::State::failed;
        };
        const auto goes_on = [](const RankSlot& slot) {
            return slot.rank != nullptr && slot.rank->state() == Rank::State::ready;
        };
        if (job.over || std::ranges::none_of(job.ranks, failed) || std::ranges::any_of(job.ranks, goes_on)) continue;
        ++job.incarnation;
        for (RankSlot& slot : job.ranks) {
            if (slot.rank != nullptr) report_.operations += slot.rank->operations();
            slot.rank.reset();
            slot.due = never;
            slot.starts_at = now_ + time_to_restart + milliseconds(random_.below(200));
        }
    }
}

void World::check_end() {
    for (unsigned job = 0; job < jobs_.size(); ++job) {
        for (const RankSlot& slot : jobs_[job].ranks) {
            if (slot.rank != nullptr) report_.operations += slot.rank->operations();
        }
        if (truth_.blocks(job) && !truth_.heals()) {
            check_failed_in_time(job);
        } else if (!jobs_[job].over) {
            check_progress(job);
        }
    }
}

void World::check_progress(unsigned job) {
    for (unsigned rank = 0; rank < jobs_[job].ranks.size(); ++rank) {
        const RankSlot& slot = jobs_[job].ranks[rank];
        if (slot.process.status != Status::runs) continue;
        if (slot.rank == nullptr || slot.rank->completed_at() + latest_progress < now_) {
            fail(fmt::format("rank {} of job {} does not sum at the end, in state {}", rank, job,
                             slot.rank == nullptr ? -1 : static_cast<int>(slot.rank->state())));
        }
    }
}

void World::check_failed_in_time(unsigned job) {
    for (unsigned rank = 0; rank < jobs_[job].ranks.size(); ++rank) {
        const RankSlot& slot = jobs_[job].ranks[rank];
        if (slot.rank == nullptr || slot.rank->ready_at() >= scenario_.fails_at || slot.process.status != Status::runs)
            continue;
        if (slot.rank->state() == Rank::State::left) continue;
        if (slot.rank->ended_at() > truth_.fails_by()) {
            fail(fmt::format("rank {} of job {} waits although its job cannot go on", rank, job));
        }
    }
}

void World::fail(const std::string& what) {
    log_line("violation: " + what);
    report_.failures.push_back(what);
}

void World::log_line(const std::string& line) const {
    if (log_ != nullptr) fmt::print(log_, "{:12.3f} ms  {}\n", to_milliseconds(now_.time_since_epoch()), line);
}

JoinReport run_joining(const JoinScenario& scenario, std::FILE* log) { return World(scenario, log).run(); }

}  // namespace atp::joining
