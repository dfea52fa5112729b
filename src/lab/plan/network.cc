// SPDX-License-Identifier: Apache-2.0
#include "plan/network.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace atp::plan {
namespace {

constexpr double bits_a_byte = 8;

double bytes_per_s(std::int64_t bits_per_s) { return static_cast<double>(bits_per_s) / bits_a_byte; }

// The number of the job's workers under all earlier switches, whose ranks come first.
unsigned first_rank_below(const Job& job, std::size_t at) {
    return std::accumulate(job.workers.begin(), job.workers.begin() + static_cast<std::ptrdiff_t>(at), 0U);
}

// Channel c has its server at rank c modulo the number of workers.
double servers_of_rank(const Job& job, unsigned rank) {
    if (job.server != ServerPlacement::colocated) return 0;
    const unsigned workers = job.worker_count();
    const unsigned channels = job.channels / workers + (rank < job.channels % workers ? 1 : 0);
    return static_cast<double>(channels) / job.channels;
}

Tenancy tenancy_of_rank(const Job& job, unsigned rank) {
    return {.worker = true,
            .only_server = rank == 0 && job.server == ServerPlacement::colocated,
            .servers = servers_of_rank(job, rank)};
}

}  // namespace

Network::Network(const Cluster& cluster) : cluster_(cluster) {
    uplinks_.resize(cluster.switches.size());
    cards_.resize(cluster.switches.size());
    for (std::size_t at = 0; at < cluster.switches.size(); ++at) {
        const Switch& one = cluster.switches[at];
        add_hosts(at);
        if (one.parent) {
            uplinks_[at] =
                add_link({.kind = Link::Kind::uplink, .at = at, .bytes_per_s = bytes_per_s(one.uplink_bits_per_s)});
        }
        if (one.card_bits_per_s != 0) {
            cards_[at] =
                add_link({.kind = Link::Kind::card, .at = at, .bytes_per_s = bytes_per_s(one.card_bits_per_s)});
        }
    }
    for (const Job& job : cluster.jobs) {
        const std::size_t at = cluster.last_switch(job);
        servers_.push_back(add_link(
            {.kind = Link::Kind::server, .at = at, .bytes_per_s = bytes_per_s(cluster.switches[at].host_bits_per_s)}));
    }
}

std::size_t Network::add_link(const Link& link) {
    links_.push_back(link);
    return links_.size() - 1;
}

// Jobs with shares_hosts use the same hosts: worker i of each such job runs on host i. Every other job has hosts of its
// own.
void Network::add_hosts(std::size_t at) {
    const std::size_t jobs = cluster_.jobs.size();
    std::vector<std::vector<Tenancy>> shared;
    std::vector<std::vector<Tenancy>> known;
    const auto note = [&known](std::vector<Tenancy> host) {
        if (std::ranges::find(known, host) == known.end()) known.push_back(std::move(host));
    };
    for (std::size_t j = 0; j < jobs; ++j) {
        const Job& job = cluster_.jobs[j];
        const unsigned first = first_rank_below(job, at);
        for (unsigned i = 0; i < job.workers[at]; ++i) {
            const Tenancy tenancy = tenancy_of_rank(job, first + i);
            if (job.shares_hosts) {
                if (i == shared.size()) shared.emplace_back(jobs);
                shared[i][j] = tenancy;
            } else {
                std::vector<Tenancy> own(jobs);
                own[j] = tenancy;
                note(std::move(own));
            }
        }
    }
    for (std::vector<Tenancy>& host : shared) note(std::move(host));
    const double rate = bytes_per_s(cluster_.switches[at].host_bits_per_s);
    for (std::vector<Tenancy>& tenancies : known) {
        hosts_.push_back({.link = add_link({.kind = Link::Kind::worker, .at = at, .bytes_per_s = rate}),
                          .at = at,
                          .tenancies = std::move(tenancies)});
    }
}

double Network::servers_below(std::size_t at, std::size_t job) const {
    const Job& described = cluster_.jobs[job];
    const unsigned first = first_rank_below(described, at);
    double share = 0;
    for (unsigned i = 0; i < described.workers[at]; ++i) share += servers_of_rank(described, first + i);
    return share;
}

}  // namespace atp::plan
