// SPDX-License-Identifier: Apache-2.0
#include "endpoint/ack_gatherer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "endpoint/branch_receivers.h"
#include "endpoint/routing.h"
#include "protocol/breaks.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {
namespace {

// A list is no longer than a full packet of the channel, which the path to each worker carries.
std::size_t most_acks(const control::Branch& branch) {
    return std::min<std::size_t>(wire::max_listed_acks, 1 + branch.terms.lanes / ATP_LISTED_ACK_LANES);
}

bool goes_to_workers_only(const Downward& packet, const control::Branch& branch) {
    const BranchReceivers receivers(branch);
    bool any = false;
    bool all = true;
    for_each_receiver(packet, receivers, [&](const control::Branch::Child& child) {
        any = true;
        all = all && receivers.is_last_hop(child);
    });
    return any && (all || ATP_BREAK(list_past_a_switch));
}

// The aggregator of the fragment is free now, and it was the last one that it had.
bool was_added_here(const atp_header& ack, const protocol::Switch& table) {
    const auto place = table.place_of(ack);
    if (!place) return false;
    const atp_aggregator& aggregator = table.aggregator(*place);
    return aggregator.status == ATP_AGGREGATOR_FREE && atp_same_fragment(&ack, &aggregator) != 0;
}

}  // namespace

bool may_be_listed(const protocol::PacketBuffer& packet, const control::Branch& branch, const protocol::Switch& table) {
    if (packet.size != ATP_HEADER_BYTES || packet.congested || most_acks(branch) < 2) return false;
    const atp_header ack = wire::detail::load_header(packet.data);
    if (ack.type != ATP_TYPE_ACK) return false;
    const bool has_aggregator = (ack.flags & ATP_FLAG_ONE_SENDER) == 0 && !ATP_BREAK(list_of_held_sums);
    if (has_aggregator && !was_added_here(ack, table)) return false;
    return goes_to_workers_only(downward_of({packet.data, packet.size}), branch);
}

// An ACK that leaves by itself must not overtake more than two others: they would count as lost.
bool AckGatherer::take(const protocol::PacketBuffer& packet, const control::Branch& branch,
                       const protocol::Switch& table, Time now) {
    const std::span<const std::byte> bytes{packet.data, packet.size};
    if (bytes.size() != ATP_HEADER_BYTES || wire::load_u8(packet.data + ATP_OFFSET_TYPE) != ATP_TYPE_ACK) return false;
    if (may_be_listed(packet, branch, table) && add(branch, bytes, now)) return true;
    hasten(control::key_of(branch.terms));
    return false;
}

bool AckGatherer::add(const control::Branch& branch, std::span<const std::byte> ack, Time now) {
    const control::ChannelKey key = control::key_of(branch.terms);
    const std::uint16_t worker = wire::load_u16(ack.data() + ATP_OFFSET_WORKER);
    auto at = std::ranges::find_if(waiting_, [&](const Waiting& waiting) {
        return (waiting.worker == worker || ATP_BREAK(list_mixes_workers)) && waiting.key == key;
    });
    const std::size_t most = most_acks(branch);
    if (at == waiting_.end()) {
        waiting_.push_back({.key = key, .worker = worker, .due = now + hold_, .acks = empty_list()});
        at = std::prev(waiting_.end());
    } else if (at->acks->size() >= most) {
        return false;
    }
    at->acks->add(ack);
    if (at->acks->size() < most) return true;
    at->due = Time{};
    return full_ = true;
}

std::unique_ptr<wire::AckList> AckGatherer::empty_list() {
    if (spare_.empty()) return std::make_unique<wire::AckList>();
    std::unique_ptr<wire::AckList> list = std::move(spare_.back());
    spare_.pop_back();
    return list;
}

void AckGatherer::hasten(const control::ChannelKey& key) {
    for (Waiting& waiting : waiting_) {
        if (waiting.key == key) waiting.due = Time{};
    }
}

void AckGatherer::close(const control::ChannelKey& key) {
    for (std::size_t at = waiting_.size(); at-- > 0;) {
        if (waiting_[at].key == key) remove(at);
    }
}

// False: no room.
bool AckGatherer::send(const Waiting& waiting, const control::Branch& branch, wire::Outbox& out) {
    const std::span<const std::byte> packet = waiting.acks->packet();
    out.expect(std::max(branch.receivers, 1U));
    const std::span<std::byte> room = out.reserve(packet.size());
    if (room.empty()) return false;
    std::memcpy(room.data(), packet.data(), packet.size());
    bool first = true;
    const Downward down{.worker = waiting.worker, .units = branch.terms.mask1};
    for_each_receiver(down, BranchReceivers(branch), [&](const control::Branch::Child& child) {
        if (std::exchange(first, false)) {
            out.commit(packet.size(), child.address, wire::Ecn::capable_0);
        } else if (!out.repeat(child.address)) {
            ++counters_.unsent;
        }
    });
    if (waiting.acks->size() > 1) {
        ++counters_.lists;
        counters_.acks += waiting.acks->size();
    }
    return true;
}

void AckGatherer::remove(std::size_t at) {
    waiting_[at].acks->clear();
    spare_.push_back(std::move(waiting_[at].acks));
    if (at + 1 != waiting_.size()) waiting_[at] = std::move(waiting_.back());
    waiting_.pop_back();
}

Time AckGatherer::poll_timeout() const {
    Time next = never;
    if (blocked_) return next;
    for (const Waiting& waiting : waiting_) next = std::min(next, waiting.due);
    return next;
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
