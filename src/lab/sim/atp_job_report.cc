// SPDX-License-Identifier: Apache-2.0
// What an ATP job has done, and whether it was right.
#include <fmt/format.h>

#include <algorithm>

#include "sim/atp_job.h"
#include "sim/counters.h"

namespace atp::sim {

JobReport AtpJob::report() const {
    JobReport report = Job::report();
    for (const Endpoint& endpoint : endpoints_) {
        const host::RankHost* const host = host_of(endpoint);
        if (host == nullptr) continue;
        add_counters(worker_fields, host->machine().worker().counters(), report.worker);
        add_counters(server_fields, host->machine().server_counters(), report.server);
    }
    const SwitchTotals totals = processes().totals_of(number());
    add_counters(server_fields, totals.server, report.server);
    report.gathered_acks = totals.lists.acks;
    report.ack_lists = totals.lists.lists;
    return report;
}

std::uint64_t AtpJob::delivered_bytes() const {
    std::uint64_t acks = report_.worker.acks;
    for (const Endpoint& endpoint : endpoints_) {
        const host::RankHost* const host = host_of(endpoint);
        acks += host == nullptr ? 0 : host->machine().worker().counters().acks;
    }
    return acks * shared_.scenario.elements_of_packet() * sizeof(float) / ranks();
}

std::uint64_t AtpJob::added_in_network() const { return processes().totals_of(number()).added; }

std::uint64_t AtpJob::added_at_server() const { return report().server.added_here; }

double AtpJob::share_done() const {
    if (finished()) return 1;
    double done = 0;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        const bool in_iteration = tensors_ != nullptr && training_.waits_for_sums(rank);
        done += training_.iterations_done(rank) + (in_iteration ? tensors_->share_summed(rank) : 0);
    }
    return done / ranks() / shared_.scenario.iterations;
}

std::string AtpJob::whereabouts() const {
    std::string text = fmt::format("{} incarnations, {} channels of ranks join;", report_.incarnations, joining_);
    constexpr std::uint32_t shown = 8;
    for (std::uint32_t id = 0; id < std::min<std::uint32_t>(shown, static_cast<std::uint32_t>(endpoints_.size()));
         ++id) {
        const unsigned rank = rank_of(id);
        text += fmt::format(" rank {} channel {}: iteration {}, {} parts open{};", rank, channel_of(id),
                            training_.iterations_done(rank), endpoints_[id].open.size(),
                            ranks_[rank].failed ? ", failed" : "");
    }
    return text;
}

// No component sends invalid packets here: every refused packet is an error of the state machines.
void AtpJob::check(const JobReport& job) {
    const auto expect_none = [&](std::string_view what, std::uint64_t count) {
        if (count != 0) Program::fail(fmt::format("job {}: {}: {}", name(), what, count));
    };
    expect_none("audit failures", job.server.audit_failures + job.worker.audit_failures);
    expect_none("packets refused by a worker", job.worker.refused);
    expect_none("packets refused by a server", job.server.refused);
    if (job.incarnations > 1) return;
    expect_none("packets of another incarnation at a worker of a job with one incarnation", job.worker.forged);
    expect_none("packets of another incarnation at a server of a job with one incarnation", job.server.forged);
    // A late JOIN of a switch may open a server again when all ranks have left; packets that are as late come to it,
    // and complete fragments that nobody takes.
    const bool reopens = !shared_.scenario.faults.outages.empty();
    if (!reopens) expect_none("fragments further ahead than a worker can be", job.server.ahead);
    if (!job.finished) return;
    // A fragment with one sender is sent by one worker, and acknowledged to all.
    const bool all_send = shared_.scenario.owned_share == 0;
    if (job.worker.acks < job.worker.sent || (all_send && job.worker.acks != job.worker.sent)) {
        expect_none("fragments sent but not acknowledged", job.worker.sent - job.worker.acks);
    }
    const std::uint64_t completed = job.server.completed * job.workers;
    if (completed < job.worker.acks || (completed > job.worker.acks && !reopens)) {
        Program::fail(fmt::format("job {}: {} fragments completed, but {} workers took {} results", name(),
                                  job.server.completed, job.workers, job.worker.acks));
    }
}

}  // namespace atp::sim
