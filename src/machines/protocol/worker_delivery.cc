// SPDX-License-Identifier: Apache-2.0
// Fragments with an owner: whose ACKs count, what is asked for again, READYs, and the headers that name the owner.
#include <algorithm>
#include <utility>

#include "protocol/worker.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

// The server sends a fragment with an owner two ACKs. The one for all others may also reach the owner (H59,
// docs/spec/hazards.md#h59).
bool Worker::is_for_others(const wire::Packet& packet) const {
    const Delivery delivery = Delivery::of(packet.header);
    if (delivery.owner != config_.rank || ATP_BREAK(owner_takes_empty_ack)) return false;
    return delivery.one_sender ? !packet.lanes.empty() : packet.header.lanes == 0;
}

// Only the sender of these lanes knows how many there are. Workers that expect another number run another operation.
bool Worker::ends_as_mismatch(const wire::Packet& packet, Time now) {
    const std::uint32_t seq = packet.header.seq;
    const Delivery delivery = delivery_of(seq);
    if (!delivery.one_sender || packet.lanes.empty() || Delivery::of(packet.header) != delivery) return false;
    note_mismatch(seq, now);
    return true;
}

void Worker::note_mismatch(std::uint32_t seq, Time now) {
    const std::uint64_t tensor = operations_.find(seq);
    if (!config_.confirms_mismatch) return end_mismatched(tensor, now);
    hint_ = std::min(hint_.value_or(tensor), tensor);
}

std::optional<std::uint64_t> Worker::poll_hint() {
    const auto hint = std::exchange(hint_, std::nullopt);
    if (!hint || failed_ || operations_.empty() || *hint < operations_.first()) return std::nullopt;
    return *hint - operations_.first();
}

void Worker::confirm_mismatch(std::uint64_t tensor, Time now) { end_mismatched(operations_.first() + tensor, now); }

void Worker::end_mismatched(std::uint64_t tensor, Time now) {
    mismatched_ = true;
    mismatched_tensor_ = tensor;
    fail(now);
}

// Only later fragments of the same owner prove that this one was sent: with one sender its lanes, and of a sum the
// READY without which it does not complete (docs/spec/hazards.md#h61). If three of them have ACKs, a packet was lost.
void Worker::note_newer(std::uint32_t seq, const Delivery& delivery) {
    constexpr std::uint8_t proof = 3;
    for (std::uint32_t older = expected_; older != seq; ++older) {
        Slot& waiting = slot(older);
        if (waiting.state != State::sent || waiting.delivery != delivery || before(seq, waiting.newer_from)) continue;
        if (++waiting.overtaken_by != proof) continue;
        count_newer_from_now(waiting);
        ask_for_overtaken(older);
    }
}

// `ended`: nothing else is to be sent now, though the window has room.
bool Worker::ready_due(bool ended) const {
    const std::uint32_t window = std::min(congestion_.window_packets(), config_.channel.window());
    return ready_.is_due(next_seq_, window, ended);
}

std::size_t Worker::write_ready(std::span<std::byte> buffer) {
    atp_header header = own_header(ATP_TYPE_READY, expected_);
    header.argument = ready_.end(next_seq_);
    header.sending = ready_.repeats();
    wire::encode_header(header, buffer);
    ready_.note_sent(header.argument);
    ++counters_.readies;
    return ATP_HEADER_BYTES;
}

atp_header Worker::header_for(std::uint32_t seq, std::uint8_t type) {
    const Delivery delivery = delivery_of(seq);
    atp_header header = own_header(type, seq);
    header.peer = delivery.owner;
    if (delivery.one_sender) header.flags |= ATP_FLAG_ONE_SENDER;
    const bool others_add = delivery.is_owned() && !delivery.one_sender && delivery.owner != config_.rank;
    if (others_add && config_.senders.has_others()) {
        const SenderMasks::Masks& masks = config_.senders.without(delivery.owner);
        header.mask0 = masks.mask0;
        header.mask1 = masks.mask1;
    }
    header.sending = slot(seq).sendings++;
    return header;
}

atp_header Worker::own_header(std::uint8_t type, std::uint32_t seq) const {
    const Place& place = config_.place;
    atp_header header = config_.channel.header_of(type, seq);
    header.hop = place.hop;
    header.worker = config_.rank;
    header.index = indices_[config_.channel.slot(seq)];
    header.bitmap0 = 1U << place.member;
    header.mask0 = place.mask0;
    header.bitmap1 = 1U << place.unit;
    header.mask1 = place.mask1;
    return header;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
