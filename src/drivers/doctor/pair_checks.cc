// SPDX-License-Identifier: Apache-2.0
#include "doctor/pair_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "doctor/check_table.h"

namespace atp::doctor {
namespace {

constexpr std::string_view fix_of_port =
    "let firewalls and NAT pass UDP to this port; --listen, or ATP_LISTEN of a job, selects the ports";

}  // namespace

std::vector<Finding> check_pairs(const PairFacts& facts) {
    const std::size_t ranks = facts.addresses.size();
    std::vector<Finding> findings;
    for (std::uint32_t to = 0; to < ranks; ++to) {
        std::vector<PairFault> to_this;
        std::ranges::copy_if(facts.faults, std::back_inserter(to_this),
                             [&](const auto& fault) { return fault.to == to; });
        if (to_this.empty()) continue;
        if (to_this.front().from == to) {
            findings.push_back({Status::fail, fmt::format("rank {}", to), "it cannot receive: " + to_this.front().why,
                                "correct its --listen: an address of the host, and a free UDP port"});
            continue;
        }
        if (ranks > 2 && to_this.size() == ranks - 1) {
            findings.push_back(
                {Status::fail, fmt::format("rank {}", to),
                 fmt::format("no other rank reaches it at {}: {}", facts.addresses[to], to_this.front().why),
                 std::string(fix_of_port)});
            continue;
        }
        for (const PairFault& fault : to_this) {
            findings.push_back({Status::fail, fmt::format("rank {} to rank {}", fault.from, to),
                                fmt::format("no answer from {}: {}", facts.addresses[to], fault.why),
                                std::string(fix_of_port)});
        }
    }
    if (!findings.empty()) return findings;
    return {{Status::ok, name_of(CheckName::pairs),
             fmt::format("all {} ranks reach each other by UDP; every path carries packets of {} lanes", ranks,
                         facts.lanes)}};
}

}  // namespace atp::doctor
