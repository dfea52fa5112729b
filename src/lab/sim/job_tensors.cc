// SPDX-License-Identifier: Apache-2.0
#include "sim/job_tensors.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include "control/host_groups.h"
#include "host/host_ranks.h"
#include "sim/gradients.h"
#include "sim/number_tensors.h"

namespace atp::sim {
namespace {

// A bucket is striped over all channels. A channel has a source of its own, at a scale at which all sums are exact.
class SyntheticTensors final : public JobTensors {
  public:
    SyntheticTensors(const Scenario& scenario, const TensorsOf& of)
        : JobTensors(of.workers), workload_(of.workload), tensors_(of.workers) {
        for (unsigned channel = 0; channel < of.channels; ++channel) {
            sources_.push_back(std::make_unique<GradientSource>(GradientShape{.key = mix64(of.key, channel),
                                                                              .workers = of.workers,
                                                                              .payload_lanes = scenario.payload_lanes(),
                                                                              .window = 1U << scenario.window_log2,
                                                                              .float_share = scenario.float_share,
                                                                              .overflow_share = scenario.overflow_share,
                                                                              .plain_share = scenario.plain_share,
                                                                              .owned_share = scenario.owned_share,
                                                                              .sizes = scenario.gradients}));
        }
    }

    void begin(unsigned rank, unsigned iteration, std::uint32_t bucket) override {
        std::deque<GradientTensor>& tensors = tensors_[rank];
        if (bucket == 0) tensors.clear();
        const std::size_t buckets = workload_.buckets.size();
        for (unsigned channel = 0; channel < sources_.size(); ++channel) {
            add_part_of(bucket, rank, channel,
                        tensors.emplace_back(*sources_[channel], rank, std::uint64_t{iteration} * buckets + bucket,
                                             share_of(workload_.buckets[bucket].elements, channel, sources_.size())));
        }
    }

    std::string objection(unsigned rank, std::uint32_t bucket) override {
        for (std::size_t channel = 0; channel < sources_.size(); ++channel) {
            const GradientTensor& tensor = tensors_[rank][bucket * sources_.size() + channel];
            if (tensor.right()) continue;
            return fmt::format("channel {}: wrong sum, {} of {} elements delivered; {}", channel, tensor.stored(),
                               tensor.size(), sources_[channel]->mismatch());
        }
        return {};
    }

    void forget(unsigned rank) override { tensors_[rank].clear(); }

    double share_summed(unsigned rank) const override {
        double stored = 0;
        double size = 1;
        for (const GradientTensor& tensor : tensors_[rank]) {
            stored += static_cast<double>(tensor.stored());
            size += static_cast<double>(tensor.size());
        }
        return stored / size;
    }

  private:
    const workload::Workload& workload_;
    std::vector<std::unique_ptr<GradientSource>> sources_;  // by channel
    std::vector<std::deque<GradientTensor>> tensors_;       // by rank; then by bucket and channel
};

std::unique_ptr<JobTensors> tensors_of_ranks(const Scenario& scenario, const TensorsOf& of) {
    if (scenario.has_numbers()) return std::make_unique<NumberTensors>(scenario, of);
    return std::make_unique<SyntheticTensors>(scenario, of);
}

// The ranks of a host sum in its memory first. The channels take chunks of their sums in turn.
class HostTensors final : public JobTensors {
  public:
    HostTensors(const Scenario& scenario, const TensorsOf& of)
        : JobTensors(of.workers),
          each_(scenario.ranks_of_host),
          channels_(of.channels),
          tensors_(tensors_of_ranks(
              scenario, {.key = of.key, .workers = of.workers * each_, .channels = 1, .workload = of.workload})),
          parts_(std::size_t{of.workers} * each_) {
        for (unsigned worker = 0; worker < of.workers; ++worker) {
            hosts_.push_back({.memory = std::make_unique<host::HostRanks>(config_of(scenario, of, worker))});
        }
    }

    void begin(unsigned worker, unsigned iteration, std::uint32_t bucket) override {
        for (const unsigned rank : ranks_of(worker)) {
            tensors_->begin(rank, iteration, bucket);
            while (const auto part = tensors_->poll_part(rank)) {
                parts_[rank].push_back(part->number);
                hosts_[worker].memory->submit(rank % each_, *part->tensor);
            }
        }
        go_on(worker);
    }

    void finish(unsigned worker, std::uint64_t chunk) override {
        hosts_[worker].memory->finish(chunk);
        go_on(worker);
    }

    std::string objection(unsigned worker, std::uint32_t bucket) override {
        for (const unsigned rank : ranks_of(worker)) {
            if (std::string text = tensors_->objection(rank, bucket); !text.empty()) return text;
        }
        return {};
    }

    void forget(unsigned worker) override {
        hosts_[worker].memory.reset();
        for (const unsigned rank : ranks_of(worker)) tensors_->forget(rank);
    }

    double share_summed(unsigned worker) const override { return tensors_->share_summed(worker * each_); }

  private:
    struct Host {
        std::unique_ptr<host::HostRanks> memory;
        std::map<std::uint32_t, unsigned> summed{};  // by bucket: ranks that have all sums
    };

    // With the memory of the product, but shorter ranges: small tensors have several.
    [[nodiscard]] host::HostRanksConfig config_of(const Scenario& scenario, const TensorsOf& of,
                                                  unsigned worker) const {
        std::vector<std::uint16_t> numbers(each_);
        std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
        const control::HostMemoryPlan plan = control::plan_memory({.ranks = {of.workers, numbers}, .why_apart = {}});
        const tensor::ChunkRules chunks{
            .payload_lanes = scenario.payload_lanes(), .channels = of.channels, .most_lanes = plan.chunk_lanes};
        return {.slots = plan.slots,
                .rules = {.ranks = std::move(numbers),
                          .chunk_lanes = plan.chunk_lanes,
                          .range_bytes = 2048,
                          .scale = gradient_scale,
                          .network = chunks},
                .seed = mix64(of.key, worker)};
    }

    [[nodiscard]] std::ranges::iota_view<unsigned, unsigned> ranks_of(unsigned worker) const {
        return {worker * each_, (worker + 1) * each_};
    }

    // Until all ranks of the host wait for the network.
    void go_on(unsigned worker) {
        Host& host = hosts_[worker];
        host.memory->run();
        while (const auto chunk = host.memory->poll_send()) {
            add_part(worker, {static_cast<unsigned>(chunk->number % channels_), chunk->number, chunk->sums});
        }
        while (const auto own = host.memory->poll_stored()) {
            const unsigned rank = worker * each_ + *own;
            tensors_->finish(rank, parts_[rank].front());
            parts_[rank].pop_front();
            while (const auto bucket = tensors_->poll_summed(rank)) {
                if (++host.summed[*bucket] != each_) continue;
                host.summed.erase(*bucket);
                note_summed(worker, *bucket);
            }
        }
    }

    unsigned each_;  // ranks of a host
    unsigned channels_;
    std::unique_ptr<JobTensors> tensors_;           // of all ranks
    std::vector<std::deque<std::uint64_t>> parts_;  // of each rank: that it has not stored, in order
    std::vector<Host> hosts_;                       // by worker
};

}  // namespace

void JobTensors::add_part_of(std::uint32_t bucket, unsigned worker, unsigned channel, protocol::Tensor& tensor) {
    ++workers_[worker].open[bucket];
    add_part(worker, {channel, bucket, &tensor});
}

void JobTensors::finish(unsigned worker, std::uint64_t number) {
    const auto bucket = static_cast<std::uint32_t>(number);
    if (--workers_[worker].open[bucket] == 0) note_summed(worker, bucket);
}

std::unique_ptr<JobTensors> make_tensors(const Scenario& scenario, const TensorsOf& of) {
    if (scenario.ranks_of_host > 1) return std::make_unique<HostTensors>(scenario, of);
    return tensors_of_ranks(scenario, of);
}

}  // namespace atp::sim
