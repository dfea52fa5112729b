// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_pairs.h"

#include <algorithm>
#include <future>
#include <utility>

#include "comm/own_server.h"
#include "comm/switch_reach.h"
#include "control/branch.h"
#include "net/clock.h"

namespace atp::doctor {
namespace {

void add_to(PairFacts& facts, std::uint32_t from, const wire::ReachedFacts& answers) {
    for (const wire::ReachFault& fault : answers.faults) {
        facts.faults.push_back({.from = from, .to = fault.to, .why = fault.why});
    }
    for (const std::uint32_t lanes : answers.lanes) {
        if (lanes != 0) facts.lanes = facts.lanes == 0 ? lanes : std::min(facts.lanes, lanes);
    }
}

}  // namespace

Result<PairFacts> measure_pairs(store::Rendezvous& rendezvous, const std::string& listen, Duration timeout,
                                Time deadline) {
    const std::vector<std::uint32_t> ranks = rendezvous.party().ranks();
    const auto own = static_cast<std::uint16_t>(rendezvous.party().rank);
    const auto node = comm::serve_at(listen, {});
    wire::ServerFacts place;
    if (node) place.address = control::endpoint_of((*node)->address());
    const auto places = rendezvous.exchange("pair-addresses", place, ranks, deadline, wire::decode<wire::ServerFacts>);
    if (!places) return tl::unexpected(places.error());

    using Answer = std::pair<std::uint16_t, Result<comm::SwitchReach>>;
    std::vector<std::future<Answer>> asked;
    const Time until = std::min(deadline, net::after(net::now(), timeout));
    const auto ask = [until](std::uint16_t to, const wire::Address& address) {
        return Answer(to, comm::reach_address(address, {}, until));
    };
    PairFacts facts;
    for (std::uint16_t rank = 0; rank < places->size(); ++rank) {
        const wire::Endpoint& at = (*places)[rank].address;
        facts.addresses.push_back(at.family == 0 ? std::string() : to_string(control::address_of(at)));
        if (rank == own || at.family == 0) continue;
        asked.push_back(std::async(std::launch::async, ask, rank, control::address_of(at)));
    }
    wire::ReachedFacts answers;
    if (!node) answers.faults.push_back({.to = own, .why = to_string(node.error())});
    for (auto& next : asked) {
        const auto [to, reach] = next.get();
        answers.lanes.push_back(reach ? reach->lanes : 0);
        if (!reach) answers.faults.push_back({.to = to, .why = reach.error().text});
    }
    const auto all = rendezvous.exchange("pair-answers", answers, ranks, deadline, wire::decode<wire::ReachedFacts>);
    if (!all) return tl::unexpected(all.error());
    for (std::uint32_t rank = 0; rank < all->size(); ++rank) add_to(facts, rank, (*all)[rank]);
    return facts;
}

}  // namespace atp::doctor
