// SPDX-License-Identifier: Apache-2.0
#include "placements.h"

#include "fabric.h"

namespace atp::test {
namespace {

void run_on_switch(std::uint32_t world, comm::Options options, const JobBody& body) {
    const auto node = start(small_switch());
    options.channels = 2;
    Job(world, {address_of(*node)}, options).run(body);
}

void run_on_two_levels(std::uint32_t world, const comm::Options& options, const JobBody& body) {
    const TwoLevels levels;
    Job(world, {address_of(*levels.leaves[0]), address_of(*levels.leaves[1])}, options).run(body);
}

void run_on_one_host(std::uint32_t world, comm::Options options, const JobBody& body) {
    options.host_level = true;
    Job(world, {""}, options).run(body);
}

using HostOfRank = std::function<std::uint32_t(std::uint32_t rank)>;

Run on_hosts(const HostOfRank& host_of, const std::string& at) {
    return [=](std::uint32_t world, comm::Options options, const JobBody& body) {
        options.host_level = true;
        Job job(world, {at}, options);
        const auto options_of = [&](std::uint32_t rank) {
            comm::Options own = job.options_of(rank);
            own.host_name = "host" + std::to_string(host_of(rank));
            if (at.empty()) own.listen = "127.0.0." + std::to_string(2 + host_of(rank)) + ":0";
            return own;
        };
        run_with(job, options_of, body);
    };
}

// Hosts of several ranks, which do not follow each other, and one of a single rank.
void run_on_mixed_hosts(std::uint32_t world, const comm::Options& options, const JobBody& body) {
    const auto node = start(small_switch());
    on_hosts([](std::uint32_t rank) { return rank == 3 ? 2U : rank % 2; }, address_of(*node))(world, options, body);
}

}  // namespace

Run on_full_hosts_at(const std::string& switch_address) {
    return on_hosts([](std::uint32_t rank) { return rank / 2; }, switch_address);
}

void run_on_full_hosts(std::uint32_t world, const comm::Options& options, const JobBody& body) {
    const auto node = start(small_switch());
    on_full_hosts_at(address_of(*node))(world, options, body);
}

const std::vector<Placement>& placements() {
    static const std::vector<Placement> all = {{"switch", run_on_switch},
                                               {"levels", run_on_two_levels},
                                               {"host", run_on_one_host},
                                               {"hosts", on_hosts([](std::uint32_t rank) { return rank; }, "")},
                                               {"full_hosts", run_on_full_hosts},
                                               {"mixed_hosts", run_on_mixed_hosts},
                                               {"full_hosts_no_switch", on_full_hosts_at("")}};
    return all;
}

std::string name_of(const testing::TestParamInfo<Placement>& place) { return place.param.name; }

comm::Options dynamic_options(tensor::LaneType lane_type) {
    comm::Options options = small_options();
    options.scaling = tensor::Scaling::dynamic;
    options.lane_type = lane_type;
    return options;
}

}  // namespace atp::test
