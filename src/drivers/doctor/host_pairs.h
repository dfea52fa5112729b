// SPDX-License-Identifier: Apache-2.0
// Whether hosts reach each other's ports. Without a switch, each host serves a part of the sums to all others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/rendezvous.h"

namespace atp::doctor {

struct PairFault {
    std::uint32_t from = 0;
    std::uint32_t to = 0;  // as `from`: this rank cannot receive at all
    std::string why;
};

struct PairFacts {
    std::vector<std::string> addresses;  // at which each rank received; empty: it did not
    std::vector<PairFault> faults;
    std::uint32_t lanes = 0;  // of the longest packet that every path without a fault carries; 0: no such path
};

// All ranks call it. Each receives at its `listen` (host:port, host:0 or host:first-last) and asks all others, which
// takes at most `timeout`. All ranks get the same facts.
[[nodiscard]] Result<PairFacts> measure_pairs(store::Rendezvous& rendezvous, const std::string& listen,
                                              Duration timeout, Time deadline);

}  // namespace atp::doctor
