// SPDX-License-Identifier: Apache-2.0
#include "placements.h"

#include "fabric.h"

namespace atp::test {
namespace {

tensor::Scaling scaling_of_jobs = tensor::Scaling::fixed;

void run_on_switch(std::uint32_t world, const JobBody& body) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    options.channels = 2;
    Job(world, {address_of(*node)}, options).run(body);
}

void run_on_two_levels(std::uint32_t world, const JobBody& body) {
    const TwoLevels levels;
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    Job(world, {address_of(*levels.leaves[0]), address_of(*levels.leaves[1])}, options).run(body);
}

void run_on_one_host(std::uint32_t world, const JobBody& body) {
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    options.host_level = true;
    Job(world, {""}, options).run(body);
}

void run_without_switch(std::uint32_t world, const JobBody& body) { run_on_hosts(world, packed(1), "", body); }

// Hosts of several ranks, which do not follow each other, and one of a single rank.
void run_on_mixed_hosts(std::uint32_t world, const JobBody& body) {
    const auto node = start(small_switch());
    run_on_hosts(
        world, [](std::uint32_t rank) { return rank == 3 ? 2U : rank % 2; }, address_of(*node), body);
}

void run_on_full_hosts_without_switch(std::uint32_t world, const JobBody& body) {
    run_on_hosts(world, packed(2), "", body);
}

}  // namespace

HostOfRank packed(std::uint32_t each) {
    return [each](std::uint32_t rank) { return rank / each; };
}

void run_on_hosts(std::uint32_t world, const HostOfRank& host_of, const std::string& at, const JobBody& body) {
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    options.host_level = true;
    Job job(world, {at}, options);
    run_with(
        job,
        [&](std::uint32_t rank) {
            comm::Options own = job.options_of(rank);
            own.host_name = "host" + std::to_string(host_of(rank));
            own.switch_address = at;
            if (at.empty()) own.listen = "127.0.0." + std::to_string(2 + host_of(rank)) + ":0";
            return own;
        },
        body);
}

void run_on_full_hosts(std::uint32_t world, const JobBody& body) {
    const auto node = start(small_switch());
    run_on_hosts(world, packed(2), address_of(*node), body);
}

const std::vector<Placement>& placements() {
    static const std::vector<Placement> all = {{"switch", run_on_switch},
                                               {"levels", run_on_two_levels},
                                               {"host", run_on_one_host},
                                               {"hosts", run_without_switch},
                                               {"full_hosts", run_on_full_hosts},
                                               {"mixed_hosts", run_on_mixed_hosts},
                                               {"full_hosts_no_switch", run_on_full_hosts_without_switch}};
    return all;
}

std::string name_of(const testing::TestParamInfo<Placement>& place) { return place.param.name; }

DynamicJobs::DynamicJobs() { scaling_of_jobs = tensor::Scaling::dynamic; }

DynamicJobs::~DynamicJobs() { scaling_of_jobs = tensor::Scaling::fixed; }

}  // namespace atp::test
