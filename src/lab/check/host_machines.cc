// SPDX-License-Identifier: Apache-2.0
#include "check/host_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "check/state_archive.h"

namespace atp::check::ATP_VARIANT {

using protocol::HostAction;
using ActionKind = HostAction::Kind;

class HostMachines::Board final : public host::PlainBoard {
  public:
    explicit Board(HostMachines& host) : PlainBoard(host.words_), host_(host) {}

    [[nodiscard]] std::optional<unsigned> lost(std::uint64_t chunk) const override {
        if (host_.blamed_ != 0) return host_.blamed_ - 1U;
        for (unsigned rank = 0; rank < host_.ranks_; ++rank) {
            const Life life = host_.states_[rank].life;
            if (life == Life::ended) return rank;
            if (life == Life::left && host_.groups_[rank].next_load() <= chunk) return rank;
        }
        return std::nullopt;
    }

  private:
    HostMachines& host_;
};

HostMachines::HostMachines(const Configuration& configuration)
    : configuration_(configuration), ranks_(configuration.workers()), ranges_(configuration.window()) {
    assert(ranks_ <= max_workers && configuration.aggregators <= most_slots && 2 * ranges_ <= most_lanes);
    for (unsigned rank = 0; rank < ranks_; ++rank) {
        groups_.emplace_back(protocol::HostGroupConfig{.ranks = ranks_,
                                                       .slots = configuration.aggregators,
                                                       .other_hosts = configuration.other_hosts,
                                                       .speaks = configuration.other_hosts && rank == 0});
    }
    states_.resize(ranks_);
    words_.resize(waiting_places());
    for (host::SlotWords& words : words_) words.purposes.resize(ranks_);
}

// ---------------------------------------------------------------------------------------------------------- Operations

unsigned HostMachines::operation_of(std::uint64_t chunk) const {
    unsigned number = 0;
    for (std::uint64_t end = configuration_.tensors[0]; chunk >= end; end += configuration_.tensors[number]) ++number;
    return number;
}

// A rank that performs another operation does so at its last call.
std::uint64_t HostMachines::purpose_of(unsigned rank, std::uint64_t chunk) const {
    const unsigned operation = operation_of(chunk);
    const bool other =
        static_cast<int>(rank) == configuration_.mismatched_worker && operation + 1 == configuration_.tensors.size();
    return operation + 1 + (other ? 100 : 0);
}

bool HostMachines::mismatched(std::uint64_t chunk) const {
    for (unsigned rank = 1; rank < ranks_; ++rank) {
        if (purpose_of(rank, chunk) != purpose_of(0, chunk)) return true;
    }
    return false;
}

// A rank that leaves does so before the last operation.
std::uint64_t HostMachines::chunks_of(unsigned rank) const {
    const auto& all = configuration_.tensors;
    const bool leaves = static_cast<int>(rank) == configuration_.leaver;
    return std::accumulate(all.begin(), all.end() - (leaves ? 1 : 0), std::uint64_t{0});
}

std::uint32_t HostMachines::value_of(unsigned rank, std::uint64_t chunk, unsigned lane) {
    return static_cast<std::uint32_t>(4 * chunk + lane + 1) << (8 * rank);
}

std::uint32_t HostMachines::sum_of(std::uint64_t chunk, unsigned lane) const {
    std::uint32_t sum = 0;
    for (unsigned rank = 0; rank < ranks_; ++rank) sum += value_of(rank, chunk, lane);
    return sum;
}

// --------------------------------------------------------------------------------------------------------------- Steps

void HostMachines::start(unsigned /*node*/, Step& step) {
    step.reset();
    for (unsigned rank = 0; rank < ranks_; ++rank) {
        std::uint64_t chunk = 0;
        for (const std::uint8_t chunks : configuration_.tensors) {
            if (chunk >= chunks_of(rank)) break;
            groups_[rank].submit(purpose_of(rank, chunk), chunks, ranges_, ranges_);
            chunk += chunks;
        }
        send_turn(rank, step);
    }
    StateWriter writer(step.state, model_now);
    persist(writer);
    summarise(step);
}

void HostMachines::earlier_packets(std::vector<Sent>& sent) {
    if (configuration_.killed < 0) return;
    Sent kill{.to = 0, .size = 2};
    kill.bytes[0] = static_cast<std::byte>(PacketKind::kill);
    kill.bytes[1] = static_cast<std::byte>(configuration_.killed);
    sent.push_back(kill);
}

void HostMachines::step(unsigned /*node*/, std::span<const std::byte> before, Input input,
                        std::span<const std::byte> packet, Step& step) {
    step.reset();
    StateReader reader(before);
    persist(reader);
    assert(reader.at_end() && input == Input::packet);
    const auto rank = static_cast<unsigned>(packet[1]);
    switch (static_cast<PacketKind>(packet[0])) {
        case PacketKind::turn: take_turn(rank, step); break;
        case PacketKind::kill: kill(rank, step); break;
        case PacketKind::answer: answer(static_cast<std::uint64_t>(packet[1]), step); break;
    }
    StateWriter writer(step.state, time_of(input));
    persist(writer);
    summarise(step);
}

void HostMachines::send_turn(unsigned rank, Step& step) const {
    Sent turn{.to = 0, .size = 2};
    turn.bytes[0] = static_cast<std::byte>(PacketKind::turn);
    turn.bytes[1] = static_cast<std::byte>(rank);
    step.sent.push_back(turn);
}

void HostMachines::wake(unsigned slot, Step& step) {
    ++words_[slot].state;
    for (unsigned rank = 0; rank < ranks_; ++rank) {
        Rank& other = states_[rank];
        if (!other.sleeps || other.sleeps_at != slot) continue;
        other.sleeps = false;
        send_turn(rank, step);
    }
}

void HostMachines::wake_all(Step& step) {
    for (unsigned place = 0; place < waiting_places(); ++place) wake(place, step);
}

void HostMachines::send(const HostAction& action, Step& step) {
    for (unsigned lane = 0; lane < 2 * ranges_; ++lane) {
        if (slots_[action.slot].sums[lane] != sum_of(action.chunk, lane)) step.violate("a host sent a wrong sum");
    }
    if (mismatched(action.chunk)) step.violate("a host sent the sum of different operations");
    Sent answer{.to = 0, .size = 2};
    answer.bytes[0] = static_cast<std::byte>(PacketKind::answer);
    answer.bytes[1] = static_cast<std::byte>(action.chunk);
    step.sent.push_back(answer);
}

// The other hosts add nothing. If the rank that speaks has ended, the answer is lost.
void HostMachines::answer(std::uint64_t chunk, Step& step) {
    if (states_[0].life == Life::ended) return;
    const auto slot = static_cast<unsigned>(chunk % configuration_.aggregators);
    words_[slot].complete = chunk + 1;
    wake(slot, step);
    wake(configuration_.aggregators, step);
}

// In the middle of whatever it does. Its turn, if there is one, is ignored.
void HostMachines::kill(unsigned rank, Step& step) {
    Rank& killed = states_[rank];
    if (killed.over) return;
    killed.over = true;
    killed.sleeps = false;
    killed.life = Life::ended;
    wake_all(step);
}

void HostMachines::take_turn(unsigned rank, Step& step) {
    Rank& own = states_[rank];
    if (own.over) return;
    if (own.halfway) {
        copy_half(rank, 1, step);
        own.halfway = false;
        send_turn(rank, step);
        return;
    }
    protocol::HostGroup& group = groups_[rank];
    if (group.begins_pass()) own.seen = words_[group.wait_slot()].state;
    Board board(*this);
    begin(rank, group.poll_action(board, true), step);
}

void HostMachines::begin(unsigned rank, const HostAction& action, Step& step) {
    Rank& own = states_[rank];
    switch (action.kind) {
        case ActionKind::none: break;
        case ActionKind::load:
        case ActionKind::add:
        case ActionKind::store:
            own.action = action;
            own.halfway = true;
            copy_half(rank, 0, step);
            break;
        case ActionKind::send: send(action, step); break;
        case ActionKind::notify:
            wake(action.slot, step);
            if (configuration_.other_hosts && action.slot != configuration_.aggregators) {
                wake(configuration_.aggregators, step);
            }
            break;
        case ActionKind::wait:
            leave_if_done(rank, step);
            if (own.over) return;
            own.sleeps = words_[action.slot].state == own.seen;
            own.sleeps_at = static_cast<std::uint8_t>(action.slot);
            if (own.sleeps) return;
            break;
        case ActionKind::mismatch:
            if (!mismatched(action.chunk)) step.violate("a rank ended although all called the same");
            return end(rank, rank, step);
        case ActionKind::lost: return end(rank, action.rank, step);
    }
    send_turn(rank, step);
}

void HostMachines::copy_half(unsigned rank, unsigned half, Step& step) {
    Rank& own = states_[rank];
    const HostAction& action = own.action;
    Slot& slot = slots_[action.slot];
    if (action.kind == ActionKind::load) {
        for (unsigned lane = half; lane < 2 * ranges_; lane += 2) {
            slot.lanes[rank][lane] = value_of(rank, action.chunk, lane);
        }
        words_[action.slot].purposes[rank] = purpose_of(rank, action.chunk);
    } else if (action.kind == ActionKind::add) {
        if (slot.added_chunk != action.chunk + 1) slot.added = 0;
        slot.added_chunk = action.chunk + 1;
        const auto bit = static_cast<std::uint8_t>(1U << action.range);
        if (half == 0 && (slot.added & bit) != 0) step.violate("two ranks add one range");
        slot.added |= bit;
        const unsigned lane = 2 * action.range + half;
        slot.sums[lane] = 0;
        for (unsigned each = 0; each < ranks_; ++each) slot.sums[lane] += slot.lanes[each][lane];
    } else {
        for (unsigned lane = half; lane < 2 * ranges_; lane += 2) {
            if (slot.sums[lane] != sum_of(action.chunk, lane))
                step.violate("a rank stored a number that is not the sum");
        }
        if (mismatched(action.chunk)) step.violate("a rank stored the sum of different operations");
        if (half == 1) ++own.stored;
    }
}

// As the driver ends a group: all ranks name the same rank.
void HostMachines::end(unsigned rank, unsigned named, Step& step) {
    const bool at_fault = static_cast<int>(named) == configuration_.killed ||
                          static_cast<int>(named) == configuration_.leaver || configuration_.mismatched_worker >= 0;
    if (!at_fault) step.violate("a rank ended because of a rank that did nothing wrong");
    if (blamed_ == 0) blamed_ = static_cast<std::uint8_t>(named + 1);
    states_[rank].over = true;
    states_[rank].life = Life::ended;
    wake_all(step);
}

void HostMachines::leave_if_done(unsigned rank, Step& step) {
    Rank& own = states_[rank];
    if (own.stored != chunks_of(rank)) return;
    own.over = true;
    if (static_cast<int>(rank) != configuration_.leaver) return;
    own.life = Life::left;
    wake_all(step);
}

// -------------------------------------------------------------------------------------------------------------- States

template <class Archive>
void HostMachines::persist(Archive& archive) {
    archive.value(blamed_);
    for (unsigned rank = 0; rank < ranks_; ++rank) {
        groups_[rank].persist(archive);
        Rank& own = states_[rank];
        archive.value(own.seen), archive.value(own.sleeps), archive.value(own.sleeps_at), archive.value(own.halfway);
        archive.value(own.life), archive.value(own.over), archive.value(own.stored);
        if (!own.halfway) own.action = {};
        archive.value(own.action.kind), archive.value(own.action.slot), archive.value(own.action.chunk);
        archive.value(own.action.range);
    }
    for (host::SlotWords& words : words_) {
        archive.value(words.arrived), archive.value(words.open), archive.value(words.offered);
        archive.value(words.complete), archive.value(words.left);
        archive.value(words.next), archive.value(words.finished), archive.value(words.state);
        for (std::uint64_t& purpose : words.purposes) archive.value(purpose);
    }
    for (unsigned number = 0; number < configuration_.aggregators; ++number) {
        Slot& slot = slots_[number];
        archive.value(slot.added_chunk), archive.value(slot.added);
        for (unsigned lane = 0; lane < 2 * ranges_; ++lane) archive.value(slot.sums[lane]);
        for (unsigned rank = 0; rank < ranks_; ++rank) {
            for (unsigned lane = 0; lane < 2 * ranges_; ++lane) {
                std::uint32_t digits = slot.lanes[rank][lane] >> (8 * rank);  // as value_of() places them
                archive.value(digits);
                slot.lanes[rank][lane] = digits << (8 * rank);
            }
        }
    }
}

void HostMachines::summarise(Step& step) const {
    step.summary = {};
    step.summary.done = std::ranges::all_of(states_, &Rank::over);
}

std::string HostMachines::describe(std::span<const std::byte> packet) const {
    const auto number = static_cast<unsigned>(packet[1]);
    const auto kind = static_cast<PacketKind>(packet[0]);
    if (kind == PacketKind::answer) return fmt::format("the results of chunk {}", number);
    return fmt::format("{} of rank {}", kind == PacketKind::kill ? "the end" : "a step", number);
}

}  // namespace atp::check::ATP_VARIANT
