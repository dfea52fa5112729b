// SPDX-License-Identifier: Apache-2.0
#include "sim/job_tensors.h"

#include <fmt/format.h>

#include <deque>
#include <vector>

#include "sim/gradients.h"
#include "sim/number_tensors.h"

namespace atp::sim {
namespace {

// A bucket is striped over all channels. A channel has a source of its own, at a scale at which all sums are exact.
class SyntheticTensors final : public JobTensors {
  public:
    SyntheticTensors(const Scenario& s, const TensorsOf& of) : workload_(of.workload), tensors_(of.ranks) {
        for (unsigned channel = 0; channel < s.channels; ++channel) {
            sources_.push_back(std::make_unique<GradientSource>(GradientShape{.key = mix64(of.key, channel),
                                                                              .workers = of.ranks,
                                                                              .payload_lanes = s.payload_lanes(),
                                                                              .window = 1U << s.window_log2,
                                                                              .float_share = s.float_share,
                                                                              .overflow_share = s.overflow_share,
                                                                              .plain_share = s.plain_share,
                                                                              .owned_share = s.owned_share,
                                                                              .sizes = s.gradients}));
        }
    }

    void begin(unsigned rank, unsigned iteration, std::uint32_t bucket, const Submit& submit) override {
        std::deque<GradientTensor>& tensors = tensors_[rank];
        if (bucket == 0) tensors.clear();
        const std::size_t buckets = workload_.buckets.size();
        for (unsigned channel = 0; channel < sources_.size(); ++channel) {
            submit(channel,
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

}  // namespace

std::unique_ptr<JobTensors> make_tensors(const Scenario& scenario, const TensorsOf& of) {
    if (scenario.has_numbers()) return std::make_unique<NumberTensors>(scenario, of);
    return std::make_unique<SyntheticTensors>(scenario, of);
}

}  // namespace atp::sim
