// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_metrics.h"

#include <iterator>
#include <mutex>
#include <utility>

#include "comm/rank_help.h"
#include "metrics/add_counters.h"
#include "wire/job_text.h"

namespace atp::comm {
namespace {

void add_rank(const MeasuredRank& rank, metrics::Exposition& to) {
    const metrics::Labels labels{
        {"job", wire::job_to_string(rank.job)}, {"group", rank.group}, {"rank", std::to_string(rank.rank)}};
    metrics::Labels about = labels;
    about.insert(about.end(),
                 {{"name", rank.job_name}, {"world", std::to_string(rank.world)}, {"layout", rank.layout}});
    to.add({"atp_rank", metrics::Kind::info, "A rank in this process, its job's name and size, and where sums happen"},
           about, 1);
    to.add({"atp_rank_failed", metrics::Kind::gauge, "1 after an operation of the rank failed"}, labels,
           rank.has_failed() ? 1 : 0);
    metrics::add_counters("rank", rank_fields, rank_help, rank.counters(), labels, to);
}

}  // namespace

std::string metrics_text(const std::list<MeasuredRank>& ranks, metrics::TextFormat format) {
    metrics::Exposition exposition;
    for (const MeasuredRank& rank : ranks) add_rank(rank, exposition);
    return exposition.text(format);
}

namespace {

struct RanksOfProcess {
    std::mutex mutex;
    std::list<MeasuredRank> ranks;
};

// It outlives the statics: a thread that serves metrics may still ask at the end of the process.
RanksOfProcess& process() {
    static auto* const process = new RanksOfProcess();
    return *process;
}

}  // namespace

std::string metrics_of_process(metrics::TextFormat format) {
    const std::scoped_lock lock(process().mutex);
    return metrics_text(process().ranks, format);
}

MetricsEntry::MetricsEntry(MeasuredRank rank) {
    const std::scoped_lock lock(process().mutex);
    process().ranks.push_back(std::move(rank));
    at_ = std::prev(process().ranks.end());
}

MetricsEntry::~MetricsEntry() {
    const std::scoped_lock lock(process().mutex);
    process().ranks.erase(at_);
}

}  // namespace atp::comm
