// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <stdexcept>

#include "reducer.h"
#include "switchml/switch.h"
#include "switchml/worker.h"
#include "tensor/tensors.h"

namespace atp::accuracy {
namespace {

using Bytes = std::vector<std::byte>;

class SwitchMlReducer final : public Reducer {
  public:
    explicit SwitchMlReducer(const ReducerConfig& config)
        : config_(config),
          job_{.workers = static_cast<std::uint8_t>(config.workers), .lanes = config.lanes},
          switch_({.slots = job_.slots(), .lanes = config.lanes}),
          buffer_(job_.packet_bytes()) {
        if (!switch_.admit(job_)) throw std::runtime_error("the switch refused the job: its pool has too few slots");
        for (std::uint8_t rank = 0; rank < job_.workers; ++rank) {
            switchml::WorkerConfig worker;
            worker.job = job_;
            worker.rank = rank;
            worker.scale = config.form.scale;
            workers_.push_back(std::make_unique<switchml::Worker>(worker));
        }
    }

    void sum(const std::byte* inputs, std::byte* sums, std::size_t elements) override {
        std::vector<std::unique_ptr<protocol::Tensor>> tensors;
        const std::size_t bytes = elements * numeric::bytes_of(config_.type);
        Bytes others(bytes);
        for (unsigned rank = 0; rank < workers_.size(); ++rank) {
            tensors.push_back(tensor::make_sum_tensor(config_.type, inputs + rank * bytes,
                                                      rank == 0 ? sums : others.data(), elements,
                                                      static_cast<float>(config_.form.scale), 1));
            if (!workers_[rank]->submit(*tensors.back(), now_)) throw std::runtime_error("a worker refused its tensor");
            collect(rank);
        }
        while (!packets_.empty()) deliver();
        for (const auto& worker : workers_) {
            if (!worker->idle()) throw std::runtime_error("a sum did not complete");
        }
    }

    [[nodiscard]] std::vector<float> scales() const override { return {}; }

    [[nodiscard]] Counters counters() const override {
        const switchml::WorkerCounters& worker = workers_.front()->counters();
        return {.fragments = worker.results,
                .float_fragments = 0,
                .overflows = worker.overflowed,
                .bytes = worker.sent * job_.packet_bytes()};
    }

  private:
    void collect(unsigned rank) {
        while (workers_[rank]->poll_transmit(buffer_, now_)) packets_.push_back(buffer_);
        while (workers_[rank]->poll_event()) {
        }
    }
    void deliver() {
        Bytes packet = std::move(packets_.front());
        packets_.pop_front();
        const switchml::Verdict verdict = switch_.handle_packet(packet);
        if (verdict.route == switchml::Route::drop) return;
        for (unsigned rank = 0; rank < workers_.size(); ++rank) {
            Bytes copy = packet;
            workers_[rank]->handle_packet(copy, false, now_);
            collect(rank);
        }
    }

    ReducerConfig config_;
    switchml::JobConfig job_;
    switchml::Switch switch_;
    std::vector<std::unique_ptr<switchml::Worker>> workers_;
    std::deque<Bytes> packets_;
    Bytes buffer_;
    Time now_{};
};

}  // namespace

std::unique_ptr<Reducer> make_switchml(const ReducerConfig& config) {
    return std::make_unique<SwitchMlReducer>(config);
}

}  // namespace atp::accuracy
