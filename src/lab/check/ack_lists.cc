// SPDX-License-Identifier: Apache-2.0
#include "check/ack_lists.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/outbox.h"
#include "wire/packet.h"

namespace atp::check::ATP_VARIANT {
namespace {

// No packet has this version. Packets of pipelines have another one.
constexpr auto command_mark = std::byte{0xFE};

// The port of an address is the number of a node.
wire::Address address_of_child(unsigned node) {
    return wire::Address::loopback(wire::Family::ipv4, static_cast<std::uint16_t>(1 + node));
}

// Puts the packets of a machine in flight. Two workers behind one switch get one copy, which that switch multiplies.
class StepOutbox final : public wire::Outbox {
  public:
    explicit StepOutbox(Step& step) : step_(step) {}

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return std::span(packet_.bytes).first(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn /*ecn*/) override {
        packet_.size = static_cast<std::uint32_t>(bytes);
        packet_.to = to.port() - 1U;
        step_.sent.push_back(packet_);
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> /*bytes*/, const wire::Address& /*to*/,
                              wire::Ecn /*ecn*/) override {
        return false;
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override {
        if (to.port() - 1U != packet_.to) commit(packet_.size, to, wire::Ecn::capable_0);
        return true;
    }

  private:
    Step& step_;
    Sent packet_;
};

Bytes without_index(std::span<const std::byte> ack) {
    Bytes bytes(ack.begin(), ack.end());
    wire::store_u32(bytes.data() + ATP_OFFSET_INDEX, 0);
    return bytes;
}

}  // namespace

bool is_command_to_send_lists(std::span<const std::byte> packet) { return packet.front() == command_mark; }

std::vector<Bytes> acks_of(std::span<const std::byte> list) {
    constexpr std::size_t words = 16;
    Bytes first(list.begin(), list.begin() + ATP_HEADER_BYTES);
    wire::store_u8(first.data() + ATP_OFFSET_TYPE, ATP_TYPE_ACK);
    std::vector<Bytes> acks{first};
    for (std::size_t at = ATP_HEADER_BYTES; at + words <= list.size(); at += words) {
        const std::byte* const from = list.data() + at;
        std::byte* const ack = acks.emplace_back(first).data();
        wire::store_u32(ack + ATP_OFFSET_INDEX, 0);
        wire::store_u32(ack + ATP_OFFSET_SEQ, wire::load_u32(from));
        wire::store_u32(ack + ATP_OFFSET_ARGUMENT, wire::load_u32(from + 4));
        wire::store_u16(ack + ATP_OFFSET_FLAGS, wire::load_u16(from + 8));
        wire::store_u16(ack + ATP_OFFSET_PEER, wire::load_u16(from + 10));
        wire::store_u8(ack + ATP_OFFSET_SCALE, wire::load_u8(from + 12));
        wire::store_u8(ack + ATP_OFFSET_SENDING, wire::load_u8(from + 13));
    }
    return acks;
}

AckLists::AckLists(const Configuration& configuration, const Layout& layout, unsigned at) : at_(at) {
    for (unsigned job = 0; job < configuration.jobs; ++job) branches_.push_back(branch_of(configuration, layout, job));
}

// The branch that the JOINs of all children give. A switch in the path of workers has no address, so they join here.
control::Branch AckLists::branch_of(const Configuration& configuration, const Layout& layout, unsigned job) const {
    const protocol::Membership& members = layout.membership();
    wire::Join join;
    join.terms.job = job_number(job);
    join.terms.token = job_token(job, false);
    join.terms.channel = model_channel;
    join.terms.lanes = static_cast<std::uint16_t>((configuration.ack_lists - 1) * ATP_LISTED_ACK_LANES);
    join.terms.mask1 = members.all_units();
    join.level = layout.node(at_).level;
    std::optional<control::Branch> branch;
    std::vector<unsigned> child;
    for (std::uint16_t rank = 0; rank < members.workers(); ++rank) {
        const protocol::Place& place = members.place(rank);
        layout.down(at_, job, {.worker = rank}, child);
        if (child.empty()) continue;
        const bool whole = join.level == 1;
        if (whole && place.member != 0) continue;
        const protocol::Unit& unit = members.unit(place.unit);
        join.units = {{.unit = place.unit,
                       .members = whole ? members.unit_mask(place.unit) : 1U << place.member,
                       .mask0 = members.unit_mask(place.unit),
                       .direct = unit.direct,
                       .ranks = whole ? unit.ranks : std::vector{rank}}};
        if (!branch) branch = control::Branch::of(join);
        branch->attach(join, address_of_child(child.front()), model_now);
    }
    return std::move(branch).value();
}

bool AckLists::take(const protocol::PacketBuffer& packet, const protocol::Switch& table, Step& step) {
    const unsigned job = packet.verdict.job - job_number(0);
    const bool waits = gatherer_.take(packet, branches_[job], table, model_now);
    if (waits) waiting_.push_back(without_index({packet.data, packet.size}));
    send(true, step);
    if (gatherer_.empty() || std::exchange(command_in_flight_, true)) return waits;
    Sent command;
    command.to = at_;
    command.size = 1;
    command.bytes[0] = command_mark;
    step.sent.push_back(command);
    return waits;
}

void AckLists::send_all(Step& step) {
    command_in_flight_ = false;
    send(false, step);
    if (!waiting_.empty()) step.violate("a switch lost an ACK that waited in a list");
}

void AckLists::clear() {
    for (const control::Branch& branch : branches_) gatherer_.close(control::key_of(branch.terms));
    waiting_.clear();
}

void AckLists::send(bool expects_more, Step& step) {
    StepOutbox out(step);
    const std::size_t first = step.sent.size();
    gatherer_.transmit(out, model_now, [&](const control::ChannelKey& key) {
        return endpoint::AckGatherer::Channel{.branch = &branches_[key.job - job_number(0)],
                                              .expects_more = expects_more};
    });
    const Sent* last = nullptr;
    for (std::size_t at = first; at < step.sent.size(); ++at) {
        const Sent& sent = step.sent[at];
        const std::span<const std::byte> bytes = std::span(sent.bytes).first(sent.size);
        if (last != nullptr && std::ranges::equal(bytes, std::span(last->bytes).first(last->size))) continue;
        assess(bytes, step);
        last = &sent;
    }
}

// Each ACK that was taken leaves once, unchanged, and to its own receiver.
void AckLists::assess(std::span<const std::byte> packet, Step& step) {
    for (const Bytes& ack : acks_of(packet)) {
        const auto found = std::ranges::find(waiting_, without_index(ack));
        if (found == waiting_.end()) return step.violate("a list has an ACK that the switch did not take");
        waiting_.erase(found);
    }
}

}  // namespace atp::check::ATP_VARIANT
