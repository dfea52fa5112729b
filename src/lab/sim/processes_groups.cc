// SPDX-License-Identifier: Apache-2.0
// Packets that are sent once for all members of a channel.
#include <algorithm>
#include <span>
#include <vector>

#include "sim/fabric.h"
#include "sim/network.h"
#include "sim/processes.h"
#include "wire/bytes.h"
#include "wire/control.h"

namespace atp::sim {
namespace {

// Any host may listen to a group, and who knows the token can forge packets of the job (H70, docs/spec/hazards.md#h70).
bool has_token(std::span<const std::byte> packet, std::uint64_t token) {
    if (const auto joined = wire::decode<wire::Joined>(packet)) return joined->token == token;
    return packet.size() >= ATP_HEADER_BYTES && wire::load_u64(packet.data() + ATP_OFFSET_TOKEN) == token;
}

}  // namespace

// The links form a tree: a copy goes over each link that leads to members, but not back.
void Processes::deliver_to_group(const Arrival& arrival, Time now) {
    const NodeId at = arrival.to;
    const NodeId from = process_at(pool().sender(arrival.packet)).node;
    std::vector<LinkId> links;
    if (at != from) links.push_back(shared_.fabric.next_hop(at, from));
    const std::size_t first = links.size();
    for (const ProcessId member : groups_[arrival.process & ~group_bit].members) {
        const Process& each = process_at(member);
        if (each.rank == nullptr) continue;
        if (has_token(pool().bytes(arrival.packet), each.rank->machine().config().terms.token))
            fail("a packet to a group carries the token of its job");
        if (each.node == at) {
            Arrival own = arrival;
            own.process = member;
            pool().retain(arrival.packet);
            own.packet = pool().exclusive(arrival.packet);  // a member writes the token of its job into it
            deliver_to_rank(own, true, now);
            continue;
        }
        const LinkId link = shared_.fabric.next_hop(at, each.node);
        if (std::ranges::find(links, link) == links.end()) links.push_back(link);
    }
    for (const LinkId link : std::span(links).subspan(first)) {
        pool().retain(arrival.packet);
        shared_.network.send(link, arrival.packet, {.congested = arrival.congested, .process = arrival.process}, now);
    }
    pool().release(arrival.packet);
}

// A switch in the path copies what is for all members of a channel.
void Processes::copy_in_path(const Arrival& arrival, const wire::Address& to, Time now) {
    const std::vector<wire::Address> copies = paths_.copies_of(arrival, to, now);
    if (const auto objection = paths_.objection_to(copies, arrival, to)) fail(*objection);
    for (const wire::Address& member : copies) {
        const ProcessId process = find(member);
        if (process == no_process) continue;
        Arrival copy = arrival;
        copy.process = process;
        pool().retain(arrival.packet);
        if (process_at(process).node == arrival.to) {
            copy.packet = pool().exclusive(arrival.packet);  // the member writes the token of its job into it
            deliver_to_rank(copy, false, now);
            continue;
        }
        const Network::Onward onward{.congested = arrival.congested, .process = process};
        send_on(arrival.to, arrival.packet, onward, now);
    }
}

}  // namespace atp::sim
