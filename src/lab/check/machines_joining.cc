// SPDX-License-Identifier: Apache-2.0
// What happens before the first state: all processes join, and an earlier incarnation leaves packets behind.
#include <cassert>
#include <deque>
#include <stdexcept>
#include <utility>

#include "check/machines.h"
#include "wire/control.h"

namespace atp::check::ATP_VARIANT {

void Machines::join() {
    unsigned waiting = configuration_.jobs * configuration_.workers();
    Time now = model_now - std::chrono::seconds(10);
    for (Step flying; waiting != 0; flying.sent.clear()) {
        now += model_tick;
        if (now >= model_now) throw std::logic_error("the ranks of a configuration do not join");
        for (unsigned node = 0; node < nodes(); ++node) waiting -= drive(node, now, flying);
        for (std::size_t at = 0; at < flying.sent.size(); ++at) {
            const Sent packet = flying.sent[at];
            waiting -= deliver(packet, now, flying);
        }
    }
    for (NodeState& at : states_) {
        if (configuration_.slices && at.process) cut_table(at, false);
    }
    for (unsigned node = 0; node < nodes(); ++node) write(node, now, states_[node].initial);
}

// Lets a process do what is due. The host of a server has no part in joining but to answer. Returns 1 for a rank that
// is ready now.
unsigned Machines::drive(unsigned node, Time now, Step& step) {
    NodeState& at = states_[node];
    unsigned ready = 0;
    if (at.process) at.process->handle_timeout(out_, now);
    if (at.rank) {
        do {
            if (!at.tensors.empty() && at.rank->poll_timeout() <= now) at.rank->handle_timeout(now);
            while (const auto event = at.rank->poll_event(now)) {
                ready += event->kind == endpoint::ChannelEvent::Kind::ready ? 1U : 0U;
            }
            at.rank->transmit(out_, now);
        } while (!at.tensors.empty() && at.rank->poll_timeout() <= now);
    }
    take_sent(node, step);
    return ready;
}

unsigned Machines::deliver(const Sent& packet, Time now, Step& step) {
    NodeState& at = states_[packet.to];
    const Flight flight = Flight::of(std::span(packet.bytes).first(packet.size));
    if (at.pipeline || at.in_path) {
        if (at.in_path) {
            at.in_path->handle_message(
                {.bytes = flight.bytes, .from = layout_.address_of(flight.from), .to = layout_.address_of(flight.to)},
                now);
        }
        step.sent.push_back(flight.sent_to(layout_.next(packet.to, flight.from, flight.to)));
        return 0;
    }
    const wire::Datagram datagram = datagram_of(flight, Input::packet);
    if (at.rank) at.rank->handle_datagram(datagram, now);
    if (at.process) at.process->handle_datagram(datagram, out_, now);
    return drive(packet.to, now, step);
}

// Packets of an earlier token or fragment that are still in flight: a gradient of rank 0, and a result to the last
// rank.
void Machines::earlier_packets(std::vector<Sent>& sent) {
    if (configuration_.earlier_incarnation) {
        leave_behind({.earlier = true, .first_seq = configuration_.first_seq}, sent);
    }
    if (configuration_.stale_packets) {
        leave_behind({.earlier = false, .first_seq = configuration_.first_seq - 1}, sent);
    }
    if (configuration_.strangers) sent.push_back(of_stranger());
}

// The first gradient of rank 0, with another number, from the address of the last rank.
Sent Machines::of_stranger() const {
    Machines another(configuration_, {.earlier = false, .first_seq = configuration_.first_seq});
    Sent gradient = another.first_and_last().front();
    std::byte* const number = gradient.bytes.data() + Flight::header_bytes + ATP_HEADER_BYTES;
    wire::store_u32(number, wire::load_u32(number) + 1);
    Flight flight = Flight::of(std::span<const std::byte>(gradient.bytes).first(gradient.size));
    flight.from = static_cast<std::uint8_t>(layout_.worker(0, configuration_.workers() - 1));
    return flight.sent_to(gradient.to);
}

void Machines::leave_behind(const Incarnation& incarnation, std::vector<Sent>& sent) const {
    Machines before(configuration_, incarnation);
    for (const Sent& packet : before.first_and_last()) sent.push_back(packet);
}

// The first packet of a run without faults, and the first result to the last rank.
std::vector<Sent> Machines::first_and_last() {
    std::vector<Bytes> states;
    std::deque<Sent> flying;
    Step step;
    for (unsigned node = 0; node < nodes(); ++node) {
        start(node, step);
        states.push_back(step.state);
        flying.insert(flying.end(), step.sent.begin(), step.sent.end());
    }
    std::vector<Sent> found{flying.front()};
    const unsigned last = layout_.worker(0, configuration_.workers() - 1);
    while (found.size() == 1 && !flying.empty()) {
        const Sent packet = flying.front();
        flying.pop_front();
        this->step(packet.to, states[packet.to], Input::packet, std::span(packet.bytes).first(packet.size), step);
        states[packet.to] = step.state;
        for (const Sent& sent : step.sent) {
            if (sent.to == last && found.size() == 1) found.push_back(sent);
            flying.push_back(sent);
        }
    }
    return found;
}

}  // namespace atp::check::ATP_VARIANT
