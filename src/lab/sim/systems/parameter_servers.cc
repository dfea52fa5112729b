// SPDX-License-Identifier: Apache-2.0
#include "sim/systems/parameter_servers.h"

#include <fmt/format.h>

#include <algorithm>

namespace atp::sim {

ParameterServers::ParameterServers(const Shared& shared, ProgramId id, unsigned index)
    : FlowJob(shared, id, index),
      servers_(shared.scenario.system_of(index).kind == System::Kind::ps ? std::vector{site().server_host}
                                                                         : site().worker_hosts),
      parts_(servers_.size(), std::vector<Part>(workload_.buckets.size())),
      pulled_(ranks(), std::vector<unsigned>(workload_.buckets.size())) {
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        for (unsigned server = 0; server < servers_.size(); ++server) {
            pushes_.push_back(~0U);
            pulls_.push_back(~0U);
            if (local(rank, server)) continue;
            const NodeId host = site().worker_hosts[rank];
            pushes_.back() = add_flow(host, servers_[server]);
            transfers_.push_back({.rank = rank, .server = server, .push = true});
            pulls_.back() = add_flow(servers_[server], host);
            transfers_.push_back({.rank = rank, .server = server, .push = false});
        }
    }
}

std::uint64_t ParameterServers::bytes_of(std::uint32_t bucket, unsigned server) const {
    return std::max<std::uint64_t>(share_of(workload_.buckets[bucket].elements, server, servers_.size()), 1) *
           sizeof(float);
}

void ParameterServers::submit(unsigned rank, workload::Training::Buckets buckets, Time now) {
    const unsigned iteration = training_.iterations_done(rank);
    for (std::uint32_t bucket = buckets.first; bucket < buckets.last; ++bucket) {
        for (unsigned server = 0; server < servers_.size(); ++server) {
            const Message message{
                .bytes = bytes_of(bucket, server), .label = bucket, .word = word_of(iteration, bucket, server, rank)};
            if (local(rank, server)) {
                on_push(server, message, now);
            } else {
                send(pushes_[place(rank, server)], message, now);
            }
        }
    }
}

void ParameterServers::on_message(std::uint32_t flow, const Message& message, Time now) {
    const Transfer& transfer = transfers_[flow];
    if (transfer.push) {
        on_push(transfer.server, message, now);
    } else {
        on_pulled(transfer.rank, transfer.server, message, now);
    }
}

void ParameterServers::on_push(unsigned server, const Message& message, Time now) {
    Part& part = parts_[server][message.label];
    part.word += message.word;
    if (++part.pushed != ranks()) return;
    const Message result{.bytes = message.bytes, .label = message.label, .word = part.word};
    part = Part{};
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        if (local(rank, server)) {
            on_pulled(rank, server, result, now);
        } else {
            send(pulls_[place(rank, server)], result, now);
        }
    }
}

void ParameterServers::on_pulled(unsigned rank, unsigned server, const Message& message, Time now) {
    if (message.word != sum_of_words(training_.iterations_done(rank), message.label, server)) {
        fail(fmt::format("rank {}: bucket {} of server {}: the sum does not include every worker", rank, message.label,
                         server));
    }
    unsigned& pulled = pulled_[rank][message.label];
    if (++pulled != servers_.size()) return;
    pulled = 0;
    summed(rank, message.label, now);
}

}  // namespace atp::sim
