// SPDX-License-Identifier: Apache-2.0
#include "sim/ack_lists.h"

#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "wire/outbox.h"
#include "wire/packet.h"

namespace atp::sim {
namespace {

constexpr Duration batch_time = std::chrono::microseconds(1);

// The port of an address is a rank: that of the child, or the first below it.
wire::Address address_of(std::uint16_t rank) { return wire::Address::loopback(wire::Family::ipv4, rank); }

// Sends packets of a machine over the links to its children.
class LinkOutbox final : public wire::Outbox {
  public:
    // `links`: of the switch, by rank.
    LinkOutbox(Network& network, ProgramId program, const std::vector<LinkId>& links, Time now)
        : network_(network), program_(program), links_(links), now_(now) {}
    ~LinkOutbox() override { release(); }
    LinkOutbox(const LinkOutbox&) = delete;
    LinkOutbox& operator=(const LinkOutbox&) = delete;

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        release();
        packet_ = network_.pool().allocate(program_);
        return network_.pool().room(*packet_).first(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn /*ecn*/) override {
        network_.pool().resize(*packet_, bytes);
        send(to);
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> /*bytes*/, const wire::Address& /*to*/,
                              wire::Ecn /*ecn*/) override {
        return false;
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override {
        send(to);
        return true;
    }

  private:
    void send(const wire::Address& to) {
        network_.pool().retain(*packet_);
        network_.send(links_[to.port()], *packet_, false, now_);
    }
    void release() {
        if (packet_) network_.pool().release(*packet_);
        packet_.reset();
    }

    Network& network_;
    ProgramId program_;
    const std::vector<LinkId>& links_;
    Time now_;
    std::optional<PacketId> packet_;  // the last one; this object holds a reference
};

// A branch of level 0 has one unit. A switch at which packets of several racks pass has no such branch.
bool has_one_unit(const Site& site, NodeId at) {
    const auto has_links = [](const std::vector<LinkId>& links) { return !links.empty(); };
    return std::ranges::count_if(site.to_unit[at], has_links) == 1;
}

control::ChannelKey key_of(const std::byte* packet) {
    return {wire::load_u32(packet + ATP_OFFSET_JOB), wire::load_u64(packet + ATP_OFFSET_TOKEN),
            wire::load_u16(packet + ATP_OFFSET_CHANNEL)};
}

}  // namespace

std::unique_ptr<AckLists> AckLists::make(const Fabric& fabric, const Site& site, NodeId at) {
    if (site.levels[at] < 0 || (site.levels[at] == 0 && !has_one_unit(site, at))) return nullptr;
    const bool hosts_server = fabric.links[site.up[at]].kind == FabricLink::Kind::internal;
    return std::unique_ptr<AckLists>(new AckLists(site, at, hosts_server));
}

void AckLists::open(const std::vector<protocol::ChannelConfig>& channels) {
    clear();
    branches_.clear();
    for (const protocol::ChannelConfig& channel : channels) branches_.push_back(branch_of(channel));
}

void AckLists::clear() {
    for (const control::Branch& branch : branches_) gatherer_.close(control::key_of(branch.terms));
    batch_ends_ = never;
}

// The branch that the JOINs of all children give. A rack joins a switch of level 1 as a whole.
control::Branch AckLists::branch_of(const protocol::ChannelConfig& channel) const {
    const protocol::Membership& members = site_.membership;
    wire::Join join;
    join.terms.job = channel.job;
    join.terms.token = channel.token;
    join.terms.channel = channel.channel;
    join.terms.lanes = channel.lanes;
    join.terms.mask1 = members.all_units();
    join.level = static_cast<std::uint8_t>(site_.levels[at_]);
    const bool whole = join.level == 1;
    std::optional<control::Branch> branch;
    for (std::uint16_t rank = 0; rank < members.workers(); ++rank) {
        const protocol::Place& place = members.place(rank);
        if (site_.to_worker[at_][rank] == no_link || (whole && place.member != 0)) continue;
        const protocol::Unit& unit = members.unit(place.unit);
        join.units = {{.unit = place.unit,
                       .members = whole ? members.unit_mask(place.unit) : 1U << place.member,
                       .mask0 = members.unit_mask(place.unit),
                       .direct = unit.direct,
                       .ranks = whole ? unit.ranks : std::vector{rank}}};
        if (!branch) branch = control::Branch::of(join);
        branch->attach(join, address_of(rank), Time{});
    }
    assert(branch);
    return *std::move(branch);
}

const control::Branch* AckLists::find(const control::ChannelKey& key) const {
    if (key.channel >= branches_.size()) return nullptr;
    const control::Branch& branch = branches_[key.channel];
    return control::key_of(branch.terms) == key ? &branch : nullptr;
}

bool AckLists::take(const protocol::PacketBuffer& packet, const protocol::Switch& table, Time now) {
    const control::Branch* const branch = find(key_of(packet.data));
    const bool waits = branch != nullptr && gatherer_.take(packet, *branch, table, now);
    if (!gatherer_.empty()) batch_ends_ = std::min(batch_ends_, hosts_server_ ? now : now + batch_time);
    return waits;
}

void AckLists::send(Network& network, ProgramId program, const ExpectsMore& expects_more, Time now) {
    LinkOutbox out(network, program, site_.to_worker[at_], now);
    batch_ends_ = never;
    gatherer_.transmit(out, now, [&](const control::ChannelKey& key) {
        const control::Branch* const branch = find(key);
        const bool expects = branch != nullptr && hosts_server_ && expects_more(key.channel);
        return endpoint::AckGatherer::Channel{.branch = branch, .expects_more = expects};
    });
}

}  // namespace atp::sim
