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

struct Placement {
    std::string name;
    std::function<void(std::uint32_t world, const JobBody& body)> run;
};

// A switch, two levels of switches, the memory of one host, and several hosts of one or several ranks, with a switch
// and without.
[[nodiscard]] const std::vector<Placement>& placements();
[[nodiscard]] std::string name_of(const testing::TestParamInfo<Placement>& place);

using HostOfRank = std::function<std::uint32_t(std::uint32_t rank)>;
// Each host has as many ranks, which follow each other.
[[nodiscard]] HostOfRank packed(std::uint32_t each);
// `at`: the switch; empty: the hosts have the servers.
void run_on_hosts(std::uint32_t world, const HostOfRank& host_of, const std::string& at, const JobBody& body);
void run_on_full_hosts(std::uint32_t world, const JobBody& body);

// While it exists, jobs of all placements have dynamic scaling. Otherwise their scale is fixed.
class DynamicJobs {
  public:
    DynamicJobs();
    ~DynamicJobs();
    DynamicJobs(const DynamicJobs&) = delete;
    DynamicJobs& operator=(const DynamicJobs&) = delete;
};

}  // namespace atp::test
