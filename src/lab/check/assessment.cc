// SPDX-License-Identifier: Apache-2.0
// Checks of the invariants in docs/spec/hazards.md, in every state: after each step of a node, and between nodes
// (assess()).
#include <algorithm>
#include <bit>

#include "check/machines.h"
#include "protocol/decide.h"
#include "protocol/sequence.h"

namespace atp::check::ATP_VARIANT {
namespace {

// Flag in Completion::accepted, above the bits of the ranks: the fragment is in mode floats.
constexpr std::uint8_t float_mode = 0x80;

bool is_claim(std::uint8_t event) {
    return event == ATP_EVENT_CLAIMED || event == ATP_EVENT_SUPERSEDED || event == ATP_EVENT_TAKEN_OVER;
}

bool is_release(std::uint8_t event) {
    return event == ATP_EVENT_RELEASED || event == ATP_EVENT_EXPIRED || event == ATP_EVENT_FETCHED ||
           event == ATP_EVENT_FLUSHED;
}

FragmentId id_of(const atp_header& header) { return {header.token, header.job, header.seq}; }
FragmentId id_of(const atp_aggregator& aggregator) { return {aggregator.token, aggregator.job, aggregator.seq}; }

std::uint8_t ranks_of(const atp_header& header, const protocol::Membership& membership) {
    unsigned ranks = 0;
    for (unsigned rank = 0; rank < membership.workers(); ++rank) {
        const protocol::Place& place = membership.place(static_cast<std::uint16_t>(rank));
        if ((header.bitmap1 >> place.unit & 1U) == 0) continue;
        const bool whole = (header.flags & ATP_FLAG_WHOLE) != 0;
        if (whole && protocol::Delivery::of(header).adds_at_home(static_cast<std::uint16_t>(rank))) continue;
        if (whole || (header.bitmap0 >> place.member & 1U) != 0) ranks |= 1U << rank;
    }
    return static_cast<std::uint8_t>(ranks);
}

}  // namespace

// A FLUSH for racks comes to no switch of other racks.
void Machines::assess_flush(unsigned node, std::span<const std::byte> packet, Step& step) const {
    const auto byte = [&](std::size_t offset) { return wire::load_u8(packet.data() + offset); };
    if (node == layout_.top() || byte(ATP_OFFSET_TYPE) != ATP_TYPE_FLUSH || byte(ATP_OFFSET_HOP) != 0) return;
    const std::uint32_t units = wire::load_u32(packet.data() + ATP_OFFSET_BITMAP1);
    for (unsigned rank = 0; rank < membership_->workers(); ++rank) {
        const unsigned unit = membership_->place(static_cast<std::uint16_t>(rank)).unit;
        if (layout_.above(layout_.worker(0, rank)) == node && (units >> unit & 1U) != 0) return;
    }
    step.violate("a FLUSH came to a rack that it is not for");
}

// A worker sends only fragments of its window, and all its packets of a fragment name the same aggregator.
void Machines::assess_sending(NodeState& worker, std::span<const std::byte> packet, Step& step) {
    const std::uint32_t seq = wire::load_u32(packet.data() + ATP_OFFSET_SEQ);
    const std::uint32_t index = wire::load_u32(packet.data() + ATP_OFFSET_INDEX);
    const std::uint16_t flags = wire::load_u16(packet.data() + ATP_OFFSET_FLAGS);
    const bool gradient = wire::load_u8(packet.data() + ATP_OFFSET_TYPE) == ATP_TYPE_GRADIENT;
    const std::int32_t ahead = protocol::distance(worker.rank->machine().worker().expected(), seq);
    if (ahead < 0 || ahead >= static_cast<std::int32_t>(configuration_.window())) {
        step.violate("a worker sent a fragment outside of its window");
    }
    if (index >= configuration_.aggregators) step.violate("a worker named an aggregator beyond the table");
    std::uint8_t& used_index = worker.sent_index[seq & (configuration_.window() - 1)];
    if (gradient && (flags & ATP_FLAG_RESEND) == 0) {
        used_index = static_cast<std::uint8_t>(index);
    } else if (index != used_index) {
        step.violate("a worker sent a fragment again, with another aggregator");
    }
}

// A worker halves its window at most once until all is acknowledged that it had sent by then. Each ACK without a mark
// lets a smaller window grow. In the model a step has more bytes than a whole window, so each growth shows.
void Machines::assess_window(NodeState& worker, const Window& before, std::span<const std::byte> packet,
                             Step& step) const {
    const protocol::Worker& machine = worker.rank->machine().worker();
    const auto expected = static_cast<std::uint8_t>(truth_.offset_of(machine.expected()));
    const std::uint64_t halvings = machine.counters().halvings - before.halvings;
    if (halvings > 1 || (halvings == 1 && expected < worker.halved_until))
        step.violate("a worker halved its window again before the ACKs of the window");
    if (halvings != 0) worker.halved_until = static_cast<std::uint8_t>(truth_.offset_of(machine.next_seq()));
    if (worker.halved_until <= expected) worker.halved_until = 0;
    if (machine.counters().acks == before.acks) return;
    const unsigned bit = 1U << static_cast<unsigned>(truth_.offset_of(wire::load_u32(packet.data() + ATP_OFFSET_SEQ)));
    const unsigned marks = ATP_FLAG_ECN | ATP_FLAG_ECN_DOWN;
    const bool marked = (wire::load_u16(packet.data() + ATP_OFFSET_FLAGS) & marks) != 0;
    worker.taken = static_cast<std::uint8_t>(worker.taken | bit);
    if (marked) worker.marked = static_cast<std::uint8_t>(worker.marked | bit);
    const bool may_grow = before.packets < configuration_.window() && halvings == 0 && !marked;
    if (may_grow && machine.window_packets() <= before.packets)
        step.violate("an ACK without a mark did not let a window grow");
}

void Machines::assess_completed(const NodeState& worker, Step& step) {
    if (configuration_.mismatched_worker >= 0)
        step.violate("a worker received a sum, although workers called different operations");
    const std::uint32_t all = static_cast<const ModelTensor&>(worker.rank->completed()).all_stored();
    if ((worker.stored & all) != all) step.violate("a tensor was reported complete without all of its sums");
}

void Machines::assess_server(const protocol::ServerCounters& before, const protocol::ServerCounters& after,
                             Step& step) {
    if (after.unsent != before.unsent) step.violate("the server's queue of answers was full");
    if (after.audit_failures != before.audit_failures) step.violate("the audit lane caught a wrong sum at the server");
}

// An accepted set is disjoint from the included set, or a superset of it. A complete set has every worker exactly once.
void Machines::assess_merge(Completion& completion, const protocol::Server& server, const Merge& merge, Step& step) {
    const protocol::ServerCounters& before = merge.before;
    const protocol::ServerCounters& after = server.counters();
    assess_server(before, after, step);
    if (after.readies != before.readies && after.completed != before.completed) note_completed(completion, server);
    if (after.gradients == before.gradients) return;
    const atp_header& header = merge.header;
    std::uint8_t& accepted = completion.accepted[header.seq % (2 * configuration_.window())];
    if (after.float_fragments != before.float_fragments) accepted = float_mode;
    const bool integers_too_late = (accepted & float_mode) != 0 && atp_lanes_type(&header) != ATP_DTYPE_FLOAT32;
    const bool dropped = after.duplicates != before.duplicates || after.overlapping != before.overlapping ||
                         after.overflowed != before.overflowed || after.refused != before.refused ||
                         after.audit_failures != before.audit_failures || integers_too_late;
    if (!dropped) {
        const std::uint8_t ranks = ranks_of(header, layout_.membership());
        const std::uint8_t in = accepted & static_cast<std::uint8_t>(~float_mode);
        const bool is_float = atp_lanes_type(&header) == ATP_DTYPE_FLOAT32;
        const bool one_of_several = is_float && (header.part != 0 || atp_lanes_form(&header) != ATP_DTYPE_INT32);
        if ((ranks & in) != 0 && (ranks & in) != in && !one_of_several)
            step.violate("the server accepted a set that overlaps the included set and does not contain it");
        accepted |= ranks;
    }
    if (after.completed == before.completed) return;
    const protocol::Delivery delivery = truth_.delivery(truth_.offset_of(header.seq));
    unsigned everybody = (1U << layout_.membership().workers()) - 1U;
    if (delivery.one_sender) everybody = 1U << delivery.owner;
    // Whether the owner's own numbers were needed shows in the ACK.
    if (delivery.is_owned() && !delivery.one_sender) everybody &= ~(1U << delivery.owner);
    if ((accepted & everybody) != everybody) step.violate("the server completed a fragment without all workers");
    accepted = 0;
    completion.completed |= 1U << static_cast<unsigned>(truth_.offset_of(header.seq));
}

// Of a READY, which completes fragments that lack nothing else, or of a batch.
void Machines::note_completed(Completion& completion, const protocol::Server& server) const {
    const std::int32_t end = truth_.offset_of(server.base() + configuration_.window());
    for (std::int32_t offset = 0; offset < end; ++offset) {
        const std::uint32_t seq = configuration_.first_seq + static_cast<std::uint32_t>(offset);
        if (!server.has_result(seq) || (completion.completed >> static_cast<unsigned>(offset) & 1U) != 0) continue;
        completion.accepted[seq % (2 * configuration_.window())] = 0;
        completion.completed |= 1U << static_cast<unsigned>(offset);
    }
}

void Machines::assess_gradient(std::span<const std::byte> bytes, Step& step) {
    Bytes copy(bytes.begin(), bytes.end());
    wire::Packet packet;
    if (wire::decode(copy, packet) != wire::DecodeError::none) {
        step.violate("a switch sent a packet that cannot be decoded");
    } else if (packet.header.type == ATP_TYPE_GRADIENT) {
        step.violate(truth_.wrong_gradient(packet));
    }
}

void Machines::assess_answer(std::span<const std::byte> bytes, Step& step) {
    Bytes copy(bytes.begin(), bytes.end());
    wire::Packet packet;
    if (wire::decode(copy, packet) != wire::DecodeError::none) {
        step.violate("the server sent a packet that cannot be decoded");
        return;
    }
    if (packet.header.type != ATP_TYPE_ACK) return;
    if (configuration_.mismatched_worker >= 0) step.violate("gradients of different operations were summed");
    step.violate(truth_.wrong_ack(packet));
    if (packet.header.argument >= configuration_.aggregators)
        step.violate("an ACK names an aggregator beyond the table");
    if (configuration_.marked_worker >= 0 && (packet.header.flags & ATP_FLAG_ECN) == 0) {
        step.violate("a gradient had a congestion mark, and the ACK of its fragment has none");
    }
}

FragmentPlace Machines::place_of(std::uint64_t token, std::uint32_t seq) const {
    return {static_cast<std::uint8_t>(job_of(token)), static_cast<std::int8_t>(truth_.offset_of(seq))};
}

void Machines::assess_switch(NodeState& at, const atp_header& header, std::uint32_t place, Input input,
                             std::uint8_t event, Step& step) {
    const atp_aggregator& before = seen_[place];
    const atp_aggregator& after = table_of(at).aggregator(place);
    FragmentId& released = at.released[place];
    const FragmentId mine = id_of(header);
    if (header.type == ATP_TYPE_ACK_LIST && (event != ATP_EVENT_PASSED || after.status != before.status))
        step.violate("a switch did more with a list of ACKs than to forward it");
    const bool same_stream = before.job == header.job && before.token == header.token;
    const std::int32_t ahead = protocol::distance(before.seq, header.seq);

    if (is_claim(event)) {
        const atp_slice* const slice = table_of(at).slice_of(header.job, header.token);
        const auto has = [&](const atp_range& range) { return place - range.base < range.size; };
        if (slice != nullptr && !has(slice->now) && !has(slice->before))
            step.violate("a fragment claimed an aggregator beyond the slice of its job");
        if (released == mine) step.violate("a fragment claimed again an aggregator that had released it");
        released = {};
        step.claims.claimed = place_of(header.token, header.seq);
    }
    if (event == ATP_EVENT_TAKEN_OVER && input != Input::packet_aged) {
        step.violate("a packet took over an aggregator that is not abandoned");
    }
    if (event == ATP_EVENT_COLLIDED && same_stream && ahead >= static_cast<std::int32_t>(configuration_.window())) {
        step.violate("a fragment collides with a finished predecessor of its own stream");
    }
    if (event == ATP_EVENT_SUPERSEDED) {
        step.claims.superseded = place_of(before.token, before.seq);
    }
    if (is_release(event)) released = id_of(before);
    // These events leave a tombstone in a free aggregator, so that late packets are forwarded as well.
    const bool closed = event == ATP_EVENT_CLOSED || event == ATP_EVENT_RESENT;
    if (closed && before.status == ATP_AGGREGATOR_FREE) released = mine;
    if (after.status != ATP_AGGREGATOR_FREE && id_of(after) == released) {
        step.violate("an aggregator still holds a fragment that it has released");
    }
}

SystemAssessment Machines::assess(unsigned node, const Claims& claims, Summaries after) const {
    if (claims.superseded && !complete(after, *claims.superseded)) {
        return {.violation = "an aggregator was superseded before its fragment was complete"};
    }
    if (kind(node) == NodeKind::worker && !indices_agree(node, after)) {
        return {.violation = "two workers used different aggregators for the same fragment"};
    }
    if (kind(node) == NodeKind::worker && !marks_agree(node, after)) {
        return {.violation = "two workers got different congestion marks for the same fragment"};
    }
    return {.violation = {}, .late_claim = claims.claimed && complete(after, *claims.claimed)};
}

bool Machines::complete(Summaries after, FragmentPlace fragment) const {
    if (fragment.offset < 0) return true;
    const Summary& server = *after[layout_.server(fragment.job)];
    return (server.completed[fragment.job] >> static_cast<unsigned>(fragment.offset) & 1U) != 0;
}

// All workers use the same aggregator for the same fragment: no split and no leak (H11, docs/spec/hazards.md#h11).
bool Machines::indices_agree(unsigned node, Summaries after) const {
    const Node& place = layout_.node(node);
    const Summary& mine = *after[node];
    for (unsigned rank = 0; rank < layout_.membership().workers(); ++rank) {
        const unsigned other_node = layout_.worker(place.job, rank);
        const Summary& other = *after[other_node];
        if (other_node == node || other.crashed) continue;
        const auto last = static_cast<std::int32_t>(std::min(mine.next_offset, other.next_offset));
        const auto window = static_cast<std::int32_t>(configuration_.window());
        const auto newest = static_cast<std::int32_t>(std::max(mine.next_offset, other.next_offset));
        for (std::int32_t offset = std::max(newest - window, 0); offset < last; ++offset) {
            const std::uint32_t slot =
                (configuration_.first_seq + static_cast<std::uint32_t>(offset)) & (configuration_.window() - 1);
            if (mine.sent_index[slot] == other.sent_index[slot]) continue;
            return false;
        }
    }
    return true;
}

// Windows of all workers halve for the same fragments (H32, docs/spec/hazards.md#h32).
bool Machines::marks_agree(unsigned node, Summaries after) const {
    const Summary& mine = *after[node];
    for (unsigned rank = 0; rank < layout_.membership().workers(); ++rank) {
        const Summary& other = *after[layout_.worker(layout_.node(node).job, rank)];
        if (!other.crashed && ((mine.marked ^ other.marked) & mine.taken & other.taken) != 0) return false;
    }
    return true;
}

void Machines::summarise(unsigned node, Time now, Step& step) {
    NodeState& at = states_[node];
    Summary& summary = step.summary;
    if (!at.tensors.empty()) {
        const protocol::Worker& worker = at.rank->machine().worker();
        summary.done = at.ended || worker.idle();
        summary.failed = at.ended || worker.failed();
        summary.timer_armed = moment_of(at.rank->poll_timeout(), now) <= Moment::timer;
        summary.next_offset = worker.next_seq() - configuration_.first_seq;
        summary.sent_index = at.sent_index;
        summary.taken = at.taken;
        summary.marked = at.marked;
    }
    for (std::size_t at_server = 0; at_server < at.servers.size(); ++at_server) {
        const std::size_t job = at.rank ? layout_.node(node).job : at_server;
        summary.completed[job] = at.servers[at_server].completed;
    }
    if (at.pipeline) summarise_pipeline(*at.pipeline, step);
    if (at.process || at.in_path) summarise_table(at, step);
}

// A switch that hosts servers cannot restart: it loses their sums.
void Machines::summarise_table(NodeState& at, Step& step) const {
    Summary& summary = step.summary;
    for (std::uint32_t index = 0; index < configuration_.aggregators; ++index) {
        const atp_aggregator& aggregator = table_of(at).aggregator(index);
        summary.untouched = summary.untouched && aggregator.token == 0;
        if (aggregator.status == ATP_AGGREGATOR_FREE) continue;
        ++summary.held;
        if (!reclaimable(aggregator, index)) step.violate("a held aggregator can never be reclaimed");
    }
    if (!at.servers.empty()) summary.untouched = true;
    if (configuration_.slices) summarise_slices(at, step);
}

// True if a held aggregator can be claimed in both ways: after ageing by any fragment (here the one before the holder),
// and at once by a fragment of the same stream that is W newer.
bool Machines::reclaimable(const atp_aggregator& held, std::uint32_t index) const {
    const std::uint8_t hop = held.unit != 0 ? 0 : 1;
    atp_aggregator aggregator = held;
    const auto event_of = [&](std::uint32_t seq) {
        atp_header header{};
        header.type = ATP_TYPE_GRADIENT;
        header.flags = ATP_FLAG_AUDIT;
        header.hop = hop;
        header.lanes = ATP_INT32_LANES;
        header.window_log2 = configuration_.window_log2;
        header.job = held.job;
        header.channel = held.channel;
        header.token = held.token;
        header.seq = seq;
        header.index = index;
        header.peer = ATP_WORKER_ALL;
        header.bitmap0 = 1;
        header.mask0 = hop == 0 ? 3U : 1U;
        header.bitmap1 = 1;
        header.mask1 = 3;
        const Time later = after_ageing + 2 * model_ageing;
        return atp_decide(&header, configuration_.lanes(), 0, &aggregator,
                          static_cast<std::uint32_t>(later.time_since_epoch().count() / 1000),
                          static_cast<std::uint32_t>(model_ageing.count() / 1000))
            .event;
    };
    if (event_of(held.seq - 1) != ATP_EVENT_TAKEN_OVER) return false;
    return event_of(held.seq - 1 + configuration_.window()) == ATP_EVENT_SUPERSEDED;
}

}  // namespace atp::check::ATP_VARIANT
