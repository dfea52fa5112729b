// SPDX-License-Identifier: Apache-2.0
#include "check/joining_machines.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "check/clock_archive.h"
#include "endpoint/channel_machine.h"
#include "wire/control.h"

namespace atp::check::ATP_VARIANT {
namespace {

constexpr std::uint64_t nonce_of_earlier = 900;
constexpr std::uint32_t number_of_earlier = 60;
// Of Life::unasked. Few, so that the states are.
constexpr std::uint32_t most_unasked = 2;
constexpr std::uint32_t parent_answered = most_unasked + 1;

Flight flight_between(unsigned from, unsigned to, std::span<const std::byte> bytes,
                      Flight::Kind kind = Flight::Kind::datagram) {
    return {.kind = kind, .from = static_cast<std::uint8_t>(from), .to = static_cast<std::uint8_t>(to), .bytes = bytes};
}

Sent message_between(unsigned from, unsigned to, const wire::JoiningMessage& message) {
    std::array<std::byte, 500> bytes{};
    const std::size_t size = wire::encode(message, bytes);
    assert(size != 0);
    return flight_between(from, to, std::span(bytes).first(size)).sent_to(to);
}

wire::SendError error_of(const Flight& report, const wire::Address& to) {
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = to, .by_network = true};
    error.quoted_bytes = std::min(report.bytes.size(), error.quoted.size());
    std::ranges::copy(report.bytes.first(error.quoted_bytes), error.quoted.begin());
    return error;
}

const control::Branch* branch_of(const host::SwitchHost& process) {
    const control::Branch* found = nullptr;
    process.shard().tree().for_each([&](const control::Branch& branch) { found = &branch; });
    return found;
}

// Of the child at this address; 0: none has joined.
std::uint64_t nonce_of_child(const host::SwitchHost& process, const wire::Address& address) {
    std::uint64_t nonce = 0;
    if (const control::Branch* const branch = branch_of(process)) {
        branch->for_each_child([&](const control::Branch::Child& child) {
            if (child.address == address) nonce = child.nonce;
        });
    }
    return nonce;
}

}  // namespace

JoiningMachines::JoiningMachines(const Configuration& configuration)
    : Processes(configuration, {.first_seq = configuration.first_seq}), tensor_(truth_, false, 0, 0, 1) {}

host::RankHost JoiningMachines::rank_process(unsigned node) const {
    return host::RankHost(config_of_rank(0, node), layout_.address_of(node));
}

host::SwitchHost& JoiningMachines::switch_process(unsigned node, unsigned boots, bool starts) {
    std::unique_ptr<host::SwitchHost>& process = switches_[{node, boots}];
    if (process == nullptr || starts) process = std::make_unique<host::SwitchHost>(config_of_switch(node, boots));
    return *process;
}

void JoiningMachines::start(unsigned node, Step& step) {
    step.reset();
    Life life;
    if (is_rank(node)) {
        host::RankHost rank = rank_process(node);
        save(life, &rank, nullptr, model_now, step);
        step.sent.push_back(order_of(Flight::Kind::start, node));
        if (configuration_.leaver == static_cast<int>(node)) step.sent.push_back(order_of(Flight::Kind::leave, node));
    } else {
        life.phase = Phase::runs;
        save(life, nullptr, &switch_process(node, 0, true), model_now, step);
    }
}

// An earlier process of rank 0 had the same token and the same address.
void JoiningMachines::earlier_packets(std::vector<Sent>& sent) {
    if (!configuration_.earlier_incarnation) return;
    const endpoint::ChannelMachineConfig config = config_of_rank(0, 0);
    const unsigned above = layout_.above(0);
    sent.push_back(message_between(above, 0,
                                   wire::Joined{.nonce = nonce_of_earlier,
                                                .job = config.terms.job,
                                                .token = config.terms.token,
                                                .channel = config.terms.channel,
                                                .epoch = 1,
                                                .number = number_of_earlier,
                                                .ready = true,
                                                .hold_ms = 200}));
    sent.push_back(message_between(0, above,
                                   wire::Leave{.nonce = nonce_of_earlier,
                                               .job = config.terms.job,
                                               .token = config.terms.token,
                                               .channel = config.terms.channel,
                                               .epoch = number_of_earlier,
                                               .unit = config.unit.unit,
                                               .member = 0}));
}

void JoiningMachines::step(unsigned node, std::span<const std::byte> before, Input input,
                           std::span<const std::byte> packet, Step& step) {
    step.reset();
    const Time now = input == Input::timeout ? model_now + model_tick : model_now;
    const std::optional<Flight> flight = packet.empty() ? std::nullopt : std::optional(Flight::of(packet));
    ClockReader reader(before);
    Life life;
    reader.value(life);
    if (is_rank(node)) {
        host::RankHost rank = rank_process(node);
        if (life.phase != Phase::crashed) rank.persist_joining(reader);
        step_rank(node, input, flight, life, rank, step);
        return save(life, &rank, nullptr, now, step);
    }
    if (input == Input::restart) {
        life = {.phase = Phase::runs, .boots = static_cast<std::uint8_t>(life.boots + 1)};
        return save(life, nullptr, &switch_process(node, life.boots, true), now, step);
    }
    host::SwitchHost& process = switch_process(node, life.boots);
    if (life.phase != Phase::crashed) process.persist_joining(reader);
    step_switch(node, input, flight, life, process, step);
    save(life, nullptr, &process, now, step);
}

// The host of a process that ended, or has not started, may report it.
void JoiningMachines::refuse(unsigned node, const std::optional<Flight>& flight, Step& step) const {
    if (!configuration_.hosts_report || !flight || flight->kind != Flight::Kind::datagram) return;
    const std::span quoted = flight->bytes.first(std::min(flight->bytes.size(), wire::SendError::most_quoted_bytes));
    step.sent.push_back(flight_between(node, flight->from, quoted, Flight::Kind::unreachable).sent_to(flight->from));
}

void JoiningMachines::step_rank(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                                host::RankHost& rank, Step& step) {
    if (input == Input::crash) life.phase = Phase::crashed;
    const bool waits = life.phase == Phase::waits;
    const bool leaves = flight && flight->kind == Flight::Kind::leave;
    const bool starts = flight && flight->kind == Flight::Kind::start;
    if (life.phase == Phase::crashed || (waits && !leaves && !starts)) return refuse(node, flight, step);
    Time now = model_now;
    if (leaves) {
        if (waits) return step.sent.push_back(order_of(Flight::Kind::leave, node));
        life.phase = Phase::left;
        rank.end();
    } else if (input == Input::timeout) {
        now += model_tick;
        if (rank.poll_timeout() <= now) rank.handle_timeout(now);
    } else if (starts) {
        life.phase = Phase::runs;
        rank.handle_timeout(now);
    } else if (flight->kind == Flight::Kind::unreachable) {
        rank.handle_send_error(error_of(*flight, layout_.address_of(flight->from)), now);
    } else {
        rank.handle_datagram(datagram_of(*flight, input), now);
    }
    drain(node, life, rank, now, step);
}

void JoiningMachines::drain(unsigned node, Life& life, host::RankHost& rank, Time now, Step& step) {
    using Event = endpoint::ChannelEvent::Kind;
    while (const auto event = rank.poll_event(now)) {
        if (event->kind == Event::ready) {
            [[maybe_unused]] const bool submitted = rank.submit(tensor_, now);
            assert(submitted);
            life.ready = step.claims.became_ready = true;
        } else if (event->kind == Event::failed) {
            const auto& cause = std::get<control::MemberCause>(event->cause);
            life.failed = true;
            step.claims.blames = true;
            step.claims.blamed = blamed_by(node, cause);
            step.claims.lost_sums = cause.kind == control::MemberCause::Kind::refused;
        }
    }
    rank.transmit(out_, now);
    take_sent(node, step);
}

void JoiningMachines::step_switch(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                                  host::SwitchHost& process, Step& step) {
    if (input == Input::crash) life.phase = Phase::crashed;
    if (life.phase == Phase::crashed) return refuse(node, flight, step);
    if (input == Input::timeout) {
        const Time now = model_now + model_tick;
        if (process.poll_timeout() <= now) process.handle_timeout(out_, now);
    } else if (flight->kind == Flight::Kind::unreachable) {
        process.handle_send_error(error_of(*flight, layout_.address_of(flight->from)), out_, model_now);
    } else {
        hand_over(node, *flight, life, process, step);
    }
    take_sent(node, step);
    note_questions(node, life, step);
}

// Any host can be named as a parent, and any other may answer in its name.
void JoiningMachines::note_questions(unsigned node, Life& life, Step& step) {
    if (life.unasked == parent_answered) return;
    std::optional<wire::Join> first;
    for (const Sent& sent : step.sent) {
        const Flight flight = Flight::of(std::span(sent.bytes).first(sent.size));
        if (flight.kind != Flight::Kind::datagram) continue;
        const auto join = wire::decode<wire::Join>(flight.bytes);
        if (!join) continue;
        if (join->epoch == 1) first = join;
        if (life.unasked == 0) step.violate("switch " + name(node) + " asked a parent that has not answered too often");
        if (life.unasked != 0) --life.unasked;
    }
    if (!first || !configuration_.earlier_incarnation) return;
    constexpr unsigned stranger = 1;
    step.sent.push_back(message_between(stranger, node,
                                        wire::Joined{.nonce = nonce_of_earlier,
                                                     .job = first->terms.job,
                                                     .token = first->terms.token,
                                                     .channel = first->terms.channel,
                                                     .epoch = first->epoch,
                                                     .number = number_of_earlier,
                                                     .ready = true,
                                                     .hold_ms = 200}));
}

void JoiningMachines::hand_over(unsigned node, const Flight& flight, Life& life, host::SwitchHost& process,
                                Step& step) {
    const wire::Address& from = layout_.address_of(flight.from);
    const auto join = wire::decode<wire::Join>(flight.bytes);
    const bool is_above = flight.from == layout_.above(node);
    if (is_above && (wire::decode<wire::Joined>(flight.bytes) || wire::decode<wire::Retry>(flight.bytes))) {
        life.unasked = parent_answered;
    } else if (join && join->cookie != 0 && life.unasked < most_unasked) {
        ++life.unasked;
    }
    const std::uint64_t before = nonce_of_child(process, from);
    process.handle_datagram(datagram_of(flight, Input::packet), out_, model_now);
    const std::uint64_t after = nonce_of_child(process, from);
    if (const auto leave = wire::decode<wire::Leave>(flight.bytes); leave && before != 0 && after == 0) {
        if (before != leave->nonce) step.violate("a LEAVE removed another process");
        life.left_epochs[flight.from] = leave->epoch;
    }
    if (join && before == 0 && after != 0 && join->epoch < life.left_epochs[flight.from]) {
        step.violate("an old JOIN brought back a member that left");
    }
}

void JoiningMachines::take_sent(unsigned node, Step& step) {
    for (const auto& packet : out_.take()) {
        if (wire::control_type(packet.bytes)) step.sent.push_back(sent_from(node, packet));
    }
}

void JoiningMachines::save(Life& life, host::RankHost* rank, host::SwitchHost* process, Time now, Step& step) const {
    ClockWriter writer(step.state, now);
    writer.value(life);
    Summary& summary = step.summary;
    summary.crashed = life.phase == Phase::crashed;
    summary.restarted = life.boots != 0;
    summary.failed = life.failed;
    if (rank != nullptr) {
        if (!summary.crashed) rank->persist_joining(writer);
        summary.started = life.phase != Phase::waits;
        summary.left = life.phase == Phase::left;
        summary.ready = life.ready;
        summary.done = summary.crashed || summary.left || summary.failed;
        return;
    }
    summary.untouched = !summary.crashed && branch_of(*process) == nullptr;
    if (summary.crashed) return;
    process->persist_joining(writer);
    const control::Branch* const branch = branch_of(*process);
    summary.held = static_cast<std::uint8_t>(process->shard().tree().channels());
    summary.ready = branch != nullptr && branch->ready();
}

}  // namespace atp::check::ATP_VARIANT
