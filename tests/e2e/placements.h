// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks are placed on switches and hosts in several ways.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace atp::test {

using JobBody = std::function<void(comm::Communicator&)>;
using Run = std::function<void(std::uint32_t world, const comm::Options& options, const JobBody& body)>;

struct Placement {
    std::string name;
    Run run;
};

// A switch, two levels of switches, the memory of one host, and several hosts of one or several ranks, with a switch
// and without.
[[nodiscard]] const std::vector<Placement>& placements();
[[nodiscard]] std::string name_of(const testing::TestParamInfo<Placement>& place);

// Hosts of two ranks each, at a switch. Empty: the hosts have the servers.
[[nodiscard]] Run on_full_hosts_at(const std::string& switch_address);
void run_on_full_hosts(std::uint32_t world, const comm::Options& options, const JobBody& body);

// small_options() have a fixed scale.
[[nodiscard]] comm::Options dynamic_options(tensor::LaneType lane_type = tensor::LaneType::int32);

}  // namespace atp::test
