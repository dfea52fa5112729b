// SPDX-License-Identifier: Apache-2.0
// The words of a worker's packets: gradients that it writes, and results that it takes.
#include <algorithm>

#include "protocol/worker.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

// Elements of a fragment in its packets: zeros fill the last word of its form.
std::size_t padded(std::size_t elements, std::uint8_t form) {
    return words_of(elements, form) * atp_elements_per_word(form);
}

// The elements of a fragment in one packet of float32, by their position in the fragment.
struct FloatRange {
    std::size_t first = 0;
    std::size_t words = 0;     // 0: the fragment has no such packet
    std::size_t elements = 0;  // the other words are padding
    bool is_last = false;      // packet of the fragment
};

FloatRange float_range(std::size_t elements, std::uint8_t form, std::size_t packet, std::size_t payload) {
    const std::size_t words = padded(elements, form);
    const std::size_t first = std::min(packet * payload, words);
    const std::size_t end = std::min(first + payload, words);
    return {.first = first,
            .words = end - first,
            .elements = std::min(end, elements) - std::min(first, elements),
            .is_last = end == words};
}

// The integers of a narrow form at the end of the words become int32 in all of them.
void widen(std::span<std::byte> words, std::uint8_t form) {
    const std::size_t count = words.size() / ATP_LANE_BYTES;
    const std::size_t bytes = element_bytes(form);
    const std::uint32_t sign = form == ATP_DTYPE_INT16 ? 0x8000 : 0x80;
    const std::byte* narrow = words.last(count * bytes).data();
    for (std::size_t at = 0; at < words.size(); at += ATP_LANE_BYTES) {
        const std::uint32_t integer = form == ATP_DTYPE_INT16 ? wire::load_u16(narrow) : wire::load_u8(narrow);
        wire::store_u32(words.data() + at, (integer ^ sign) - sign);
        narrow += bytes;
    }
}

}  // namespace

// True if the ACK has the form of its fragment, the length, and the type: floats, or the fragment's own integers. This
// worker takes no proof words.
bool Worker::ack_fits(const wire::Packet& packet) const {
    const atp_header& header = packet.header;
    const Entry& operation = owner(header.seq);
    const std::uint8_t type = atp_lanes_type(&header);
    if (packet.lanes.empty())
        return !delivery_of(header.seq).receives(config_.rank) || ATP_BREAK(owner_takes_empty_ack);
    if (!delivery_of(header.seq).receives(config_.rank)) return false;
    if (atp_lanes_form(&header) != operation.form || atp_has_proof(&header) != 0) return false;
    const auto [first, count] = operation.range(header.seq);
    const std::size_t words = packet.lane_count() - (config_.channel.audit ? 1 : 0);
    if (type == ATP_DTYPE_FLOAT32) {
        if (lacks_own(header)) return false;
        const std::size_t payload = config_.channel.payload_lanes();
        const FloatRange range = float_range(count, operation.form, atp_part_packet(&header), payload);
        return !operation.plain && words != 0 && words == range.words;
    }
    // Integers come in one packet, and not behind a part of another result.
    if (type != operation.form || slot(header.seq).parts != 0 || words != words_of(count, type)) return false;
    if (lacks_own(header)) return !slot(header.seq).only_floats && header.scale == operation.tensor->scale(first);
    if (type == ATP_DTYPE_INT32) return operation.plain;
    return header.scale == operation.tensor->scale(first);
}

// The audit lane tells whose numbers are in the result: those of all workers who should be, each once (H39,
// docs/spec/hazards.md#h39).
bool Worker::audit_holds(const wire::Packet& ack) const {
    if (!config_.channel.audit || ack.lanes.empty()) return true;
    const Delivery delivery = delivery_of(ack.header.seq);
    std::uint32_t expected = 0;
    for (std::uint16_t worker = 0; worker < config_.senders.workers(); ++worker) {
        const bool at_home = worker == config_.rank && lacks_own(ack.header);
        if (delivery.contributes(worker) && !at_home)
            expected += config_.channel.result_audit_of(ack.header.seq, worker);
    }
    return wire::load_u32(ack.lanes.last(ATP_LANE_BYTES).data()) == expected;
}

bool Worker::deliver(const wire::Packet& packet) {
    if (packet.lanes.empty()) return true;
    const std::uint32_t seq = packet.header.seq;
    const Entry& operation = owner(seq);
    const auto [first, count] = operation.range(seq);
    const std::uint8_t type = atp_lanes_type(&packet.header);
    if (lacks_own(packet.header)) {
        home_sum_.store(*operation.tensor, {first, count}, packet, inverse_scale(packet.header.scale));
        return true;
    }
    if (operation.form == ATP_DTYPE_INT32) {
        operation.tensor->store(first, packet.lanes.first(count * ATP_LANE_BYTES));
        return true;
    }
    if (type == operation.form) {
        operation.tensor->store_narrow(first, packet.lanes.first(count * element_bytes(type)));
        return true;
    }
    // Only once: the caller of the operation may use a sum in its place.
    const unsigned part = atp_part_packet(&packet.header);
    const std::size_t payload = config_.channel.payload_lanes();
    std::uint8_t& parts = slot(seq).parts;
    if ((parts >> part & 1U) == 0) {
        const FloatRange range = float_range(count, operation.form, part, payload);
        parts |= static_cast<std::uint8_t>(1U << part);
        if (range.elements != 0) {
            operation.tensor->store(first + range.first, packet.lanes.first(range.elements * ATP_LANE_BYTES));
        }
    }
    const std::size_t all = (padded(count, operation.form) + payload - 1) / payload;
    return parts == (1U << all) - 1U || ATP_BREAK(half_wide_result);
}

// Reads the fragment as integers. Narrow ones may be sent as int32. If they do not fit, or could overflow in a switch,
// it raises the mode of the slot.
std::size_t Worker::load_integers(Slot& slot, const FragmentCut::Range& range, std::span<std::byte> words) {
    const Entry& operation = operations_[slot.tensor];
    const std::size_t count = words_of(range.count, operation.form);
    const std::size_t used = range.count * element_bytes(operation.form);
    const std::span<std::byte> lanes = words.first(count * ATP_LANE_BYTES);
    std::ranges::fill(lanes.subspan(used), std::byte{0});
    const std::uint8_t own_form = operation.widened ? operation.tensor->form() : operation.form;
    const std::span<std::byte> own = lanes.first(used).last(range.count * element_bytes(own_form));
    if (!operation.tensor->load_integers(range.first, own)) {
        slot.mode = Mode::floats;
        return count;
    }
    if (operation.widened) widen(lanes, own_form);
    const bool assessed = slot.mode == Mode::aggregated && !operation.plain && own_form == ATP_DTYPE_INT32;
    const std::uint32_t limit = config_.bypass_above;
    if (!assessed || limit == 0 || !numeric::exceeds(lanes.data(), count, limit)) return count;
    ++counters_.bypassed;
    slot.mode = Mode::unaggregated;
    return count;
}

// The packet names the rank whose floats it has, and which of them. The next packets have those behind it.
std::size_t Worker::load_floats(atp_header& header, bool resend, FloatPart part, const FragmentCut::Range& range,
                                std::span<std::byte> words) {
    const Entry& operation = owner(header.seq);
    const protocol::Tensor& tensor = *operation.tensor;
    const unsigned ranks = tensor.float_ranks();
    const FloatRange own = float_range(range.count, operation.form, part.packet, config_.channel.payload_lanes());
    const std::uint64_t first = range.first + own.first;
    const std::span<std::byte> lanes = words.first(own.words * ATP_LANE_BYTES);
    const std::span<std::byte> used = lanes.first(own.elements * ATP_LANE_BYTES);
    std::ranges::fill(lanes.subspan(used.size()), std::byte{0});
    if (used.empty()) {
        // only padding
    } else if (ranks == 1) {
        tensor.load_floats(first, used);
    } else {
        tensor.load_floats_of(part.rank, first, used);
    }
    counters_.float_fragments += part.rank == 0 && part.packet == 0 && !tensor.floats_only() ? 1U : 0U;
    header.part = static_cast<std::uint8_t>(part.packet << ATP_PART_PACKET_SHIFT | (ranks == 1 ? 0U : part.rank + 1));
    if (!own.is_last) {
        floats_left_ = {.any = true, .resend = resend, .seq = header.seq, .next = {part.rank, part.packet + 1}};
    } else if (part.rank + 1 != ranks) {
        floats_left_ = {.any = true, .resend = resend, .seq = header.seq, .next = {part.rank + 1, 0}};
    } else if (ranks != 1 || operation.form != ATP_DTYPE_INT32) {
        header.flags |= ATP_FLAG_LAST_RANK;
    }
    return own.words;
}

std::size_t Worker::write_gradient(std::uint32_t seq, bool resend, FloatPart part, std::span<std::byte> buffer) {
    Slot& sending = slot(seq);
    const Entry& operation = operations_[sending.tensor];
    const FragmentCut::Range range = operation.range(seq);
    const std::span<std::byte> words = buffer.subspan(ATP_HEADER_BYTES);
    std::size_t count = 0;
    if (sending.mode != Mode::floats) count = load_integers(sending, range, words);
    const bool floats = sending.mode == Mode::floats;
    atp_header header = header_for(seq, ATP_TYPE_GRADIENT);
    if (floats) count = load_floats(header, resend, part, range, words);
    if (config_.channel.audit) {
        wire::store_u32(words.data() + count * ATP_LANE_BYTES, config_.channel.audit_of(seq, config_.rank));
        ++count;
    }
    header.scale = operation.tensor->scale(range.first);
    header.argument = operation.tensor->purpose() ^ mark_of(operation.form, header.scale) ^ Delivery::of(header).mark();
    header.lanes = atp_lanes_of(operation.form, floats ? std::uint8_t{ATP_DTYPE_FLOAT32} : operation.form);
    if (resend) header.flags |= ATP_FLAG_RESEND;
    if (sending.mode != Mode::aggregated) header.flags |= ATP_FLAG_BYPASS;
    if (config_.channel.audit) header.flags |= ATP_FLAG_AUDIT;
    if (operation.plain) header.flags |= ATP_FLAG_PLAIN;
    if (echo_) {
        header.flags |= ATP_FLAG_ECN_DOWN;
        ++counters_.echoes;
        echo_ = false;
    }
    wire::encode_header(header, buffer);
    return ATP_HEADER_BYTES + count * ATP_LANE_BYTES;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
