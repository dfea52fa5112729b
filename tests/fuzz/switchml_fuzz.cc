// SPDX-License-Identifier: Apache-2.0
// SwitchML's state machines in an arbitrary network. If the network only loses, duplicates and reorders packets, no sum
// is wrong. If the network also invents packets, no machine accesses memory out of bounds, and the switch counts every
// packet once.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "input.h"
#include "require.h"
#include "switchml/switch.h"
#include "switchml/worker.h"

namespace atp::fuzz {
namespace {

constexpr std::uint8_t workers = 2;
constexpr std::size_t most_steps = 600;
constexpr std::size_t most_flights = 64;
constexpr std::uint64_t elements = 9;

// The tensor of worker r: element i is (r + 1) * (i + 1).
class Numbers final : public protocol::PlainTensor {
  public:
    Numbers(unsigned rank, bool honest) : rank_(rank), honest_(honest) {}
    [[nodiscard]] std::uint64_t size() const override { return elements; }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        require(first + lanes.size() / ATP_LANE_BYTES <= elements,
                "the sums that a worker stores lie within the tensor");
        for (std::uint64_t i = first; i < first + lanes.size() / ATP_LANE_BYTES; ++i) {
            const std::uint32_t found = wire::load_u32(lanes.data() + (i - first) * ATP_LANE_BYTES);
            require(!honest_ || found == 3 * (i + 1), "the sum includes every worker exactly once");
        }
    }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        require(first + lanes.size() / ATP_LANE_BYTES <= elements,
                "the elements that a worker sends lie within the tensor");
        for (std::uint64_t i = 0; i < lanes.size() / ATP_LANE_BYTES; ++i) {
            const auto number = static_cast<std::uint32_t>((rank_ + 1) * (first + i + 1));
            wire::store_u32(lanes.data() + i * ATP_LANE_BYTES, number);
        }
    }

  private:
    unsigned rank_;
    bool honest_;
};

class Story {
  public:
    explicit Story(Input& input) : input_(input), honest_(input.below(2) == 0) {
        job_.slots_log2 = static_cast<std::uint8_t>(input.below(3));
        job_.first_offset = input.below(2) == 0 ? 0 : 0xfffffffcU;
        require(machine_.admit(job_), "the job is admitted");
        for (std::uint8_t rank = 0; rank < workers; ++rank) {
            workers_.emplace_back(switchml::WorkerConfig{.job = job_, .rank = rank, .tensors = 3});
            tensors_.emplace_back(rank, honest_);
        }
    }

    void run() {
        for (std::size_t step = 0; step < most_steps && !input_.empty(); ++step) act();
        require_every_packet_counted();
    }

  private:
    void act() {
        switch (input_.below(8)) {
            case 0: return pass_time();
            case 1: return submit();
            case 2: return invent();
            default: return deliver();
        }
    }

    void pass_time() {
        now_ += std::chrono::microseconds(10 * input_.byte());
        for (unsigned rank = 0; rank < workers; ++rank) {
            workers_[rank].handle_timeout(now_);
            drain(rank);
        }
    }

    void submit() {
        const unsigned rank = input_.below(workers);
        static_cast<void>(workers_[rank].submit(tensors_[rank], now_));
        drain(rank);
    }

    void drain(unsigned rank) {
        Bytes buffer(job_.packet_bytes());
        while (workers_[rank].poll_transmit(buffer, now_)) fly(workers, buffer);
        while (workers_[rank].poll_event()) {
        }
    }

    void fly(unsigned to, Bytes bytes) {
        if (flights_.size() < most_flights)
            flights_.emplace_back(to, std::move(bytes));  // if the network is full, the packet is lost
    }

    void invent() {
        if (honest_) return deliver();
        const switchml::Header header{.flags = input_.byte(),
                                      .job = static_cast<std::uint8_t>(input_.below(3)),
                                      .worker = static_cast<std::uint8_t>(input_.below(3)),
                                      .slot = static_cast<std::uint16_t>(input_.below(5)),
                                      .offset = job_.first_offset + input_.below(20)};
        Bytes bytes(switchml::header_bytes + input_.below(16));
        switchml::encode_header(header, bytes);
        fly(input_.below(workers + 1), std::move(bytes));
    }

    void deliver() {
        if (flights_.empty()) return;
        const auto at = flights_.begin() + input_.below(static_cast<std::uint32_t>(flights_.size()));
        auto [to, bytes] = *at;
        const std::uint32_t disposition = input_.below(8);
        if (disposition != 0) flights_.erase(at);  // disposition 0: delivered now and again later
        if (disposition == 1) return;              // lost
        if (to < workers) {
            workers_[to].handle_packet(bytes, false, now_);
            return drain(to);
        }
        ++to_switch_;
        const switchml::Verdict verdict = machine_.handle_packet(bytes);
        for (unsigned rank = 0; rank < workers; ++rank) {
            const bool meant = verdict.route == switchml::Route::everybody || verdict.worker == rank;
            if (verdict.route != switchml::Route::drop && meant) fly(rank, bytes);
        }
    }

    void require_every_packet_counted() const {
        const auto& events = machine_.counters().events;
        require(std::accumulate(events.begin(), events.end(), std::uint64_t{0}) == to_switch_,
                "every packet is counted once");
        require(!honest_ || machine_.counters().count(switchml::Event::ahead) == 0, "no worker runs ahead");
    }

    Input& input_;
    bool honest_;
    switchml::JobConfig job_{.job = 1, .workers = workers, .lanes = 2};
    switchml::Switch machine_{{.slots = 4, .lanes = 2}};
    std::vector<switchml::Worker> workers_;
    std::vector<Numbers> tensors_;
    std::vector<std::pair<unsigned, Bytes>> flights_;  // receiver: a worker, or `workers` for the switch
    Time now_{};
    std::uint64_t to_switch_ = 0;
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
