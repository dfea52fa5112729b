// SPDX-License-Identifier: Apache-2.0
// Steps of switches that make lists of ACKs.
#include <array>
#include <utility>

#include "check/machines.h"

namespace atp::check::ATP_VARIANT {

// Switches make lists of the ACKs of a batch, and of batches that follow each other while a server expects more. A
// batch has one datagram or two: the first waits for the second, or for the order that ends the batch.
void Machines::step_batch(unsigned node, const Flight& flight, Step& step) {
    NodeState& at = states_[node];
    if (flight.is_order()) at.batch_ends = false;
    if (!flight.is_order() && at.batch.empty()) {
        const Sent kept = flight.sent_to(node);
        at.batch.assign(kept.bytes.begin(), kept.bytes.begin() + kept.size);
    } else if (!at.batch.empty()) {
        const Bytes first = std::exchange(at.batch, {});
        std::vector<Flight> flights{Flight::of(first)};
        if (!flight.is_order()) flights.push_back(flight);
        hand_over_batch(node, flights, step);
    } else {
        at.process->handle_timeout(out_, after_timeout);
    }
    take_sent(node, step);
    const bool lists_wait = moment_of(at.process->poll_timeout(), model_now) <= Moment::timer;
    if (!lists_wait && at.batch.empty() && !at.owed.empty()) step.violate("a switch lost an ACK that waited in a list");
    if ((lists_wait || !at.batch.empty()) && !std::exchange(at.batch_ends, true)) {
        step.sent.push_back(order_of(Flight::Kind::batch_ends, node));
    }
}

void Machines::hand_over_batch(unsigned node, std::span<const Flight> flights, Step& step) {
    NodeState& at = states_[node];
    std::vector<std::array<std::byte, 512>> buffers(flights.size());
    std::vector<wire::Datagram> batch;
    for (const Flight& flight : flights) {
        std::array<std::byte, 512>& buffer = buffers[batch.size()];
        std::ranges::copy(flight.bytes, buffer.begin());
        batch.push_back({.bytes = std::span(buffer).first(flight.bytes.size()),
                         .capacity = buffer.size(),
                         .from = &layout_.address_of(flight.from)});
    }
    const protocol::Server* const server = server_of(node, 0);
    const protocol::ServerCounters before = server == nullptr ? protocol::ServerCounters{} : server->counters();
    at.process->handle_batch(batch, out_, model_now);
    if (server == nullptr) return;
    assess_server(before, server->counters(), step);
    note_completed(at.servers[0], *server);
}

}  // namespace atp::check::ATP_VARIANT
