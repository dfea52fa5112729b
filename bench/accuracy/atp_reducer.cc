// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <deque>
#include <stdexcept>

#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/waker.h"
#include "protocol/worker.h"
#include "reducer.h"
#include "tensor/number_fitter.h"
#include "tensor/span_scales.h"
#include "tensor/tensors.h"

namespace atp::accuracy {
namespace {

using Bytes = std::vector<std::byte>;
using protocol::Membership;

constexpr std::uint32_t job = 1;
constexpr std::uint32_t token = 0x5eed;
constexpr Duration longest_sum = std::chrono::seconds(60);

protocol::ChannelConfig channel_of(const ReducerConfig& config) {
    return {.job = job, .token = token, .lanes = config.lanes, .window_log2 = 8, .audit = false, .aggregators = 4096};
}

class AtpReducer final : public Reducer {
  public:
    explicit AtpReducer(const ReducerConfig& config)
        : config_(config),
          membership_(*Membership::star(config.workers)),
          switch_({.aggregators = 4096, .lanes = config.lanes}),
          server_({.channel = channel_of(config), .scale = config.form.scale}, membership_),
          buffer_(server_.packet_bytes()) {
        if (!switch_.admit(job, token, 0)) throw std::runtime_error("the switch is full");
        for (std::uint16_t rank = 0; rank < config.workers; ++rank) {
            protocol::WorkerConfig worker;
            worker.channel = channel_of(config);
            worker.rank = rank;
            worker.place = membership_.place(rank);
            workers_.push_back(std::make_unique<protocol::Worker>(worker));
            fitters_.emplace_back(tensor::NumberFitter::Config{
                .form = config.form, .ranks = config.workers, .feed = std::make_shared<protocol::SilentWaker>()});
        }
    }

    void sum(const std::byte* inputs, std::byte* sums, std::size_t elements) override {
        std::vector<tensor::NumberFitter::Fitted> tensors;
        const std::size_t bytes = elements * numeric::bytes_of(config_.type);
        Bytes others(bytes);  // ranks above 0 share it: every worker receives the same bits
        for (unsigned rank = 0; rank < workers_.size(); ++rank) {
            tensors.push_back(fit(rank, inputs + rank * bytes, rank == 0 ? sums : others.data(), elements));
            for (const auto& first : tensors.back().before) submit(rank, *first);
            submit(rank, *tensors.back().tensor);
        }
        scales_ = tensors.front().scales;
        collect();
        const Time end = now_ + longest_sum;
        while (!is_done()) {
            packets_.empty() ? wait(end) : deliver();
        }
    }

    [[nodiscard]] std::vector<float> scales() const override {
        std::vector<float> scales;
        for (std::uint64_t cell = 0; scales_ != nullptr && cell < scales_->cells(); ++cell) {
            scales.push_back(static_cast<float>(scales_->units(cell)));
        }
        return scales;
    }

    [[nodiscard]] Counters counters() const override {
        return {.fragments = server_.counters().completed,
                .float_fragments = server_.counters().float_fragments,
                .overflows = server_.counters().overflowed,
                .bytes = bytes_};
    }

  private:
    struct Packet {
        Bytes bytes;
        std::uint16_t worker = 0;  // sender, or receiver
    };

    void submit(unsigned rank, protocol::Tensor& tensor) {
        if (!workers_[rank]->submit(tensor, now_)) throw std::runtime_error("a worker refused its tensor");
    }
    tensor::NumberFitter::Fitted fit(unsigned rank, const std::byte* in, std::byte* out, std::size_t elements) {
        auto tensor =
            tensor::make_sum_tensor(config_.type, in, out, elements, static_cast<float>(config_.form.scale), 1);
        return fitters_[rank].fit(std::move(tensor), config_.type, {.elements = elements});
    }

    void collect() {
        for (std::uint16_t rank = 0; rank < workers_.size(); ++rank) {
            while (const auto size = workers_[rank]->poll_transmit(buffer_, now_)) {
                if (rank == 0) bytes_ += *size;
                put(*size, rank);
            }
            while (workers_[rank]->poll_event()) {
            }
        }
        while (const auto sent = server_.poll_transmit(buffer_)) put(sent->size, sent->worker);
    }
    void put(std::size_t size, std::uint16_t worker) {
        packets_.push_back({Bytes(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size)), worker});
    }

    [[nodiscard]] bool is_done() const {
        return packets_.empty() && std::ranges::all_of(workers_, [](const auto& worker) { return worker->idle(); });
    }

    // No packet is under way, but workers may hold some back for a while.
    void wait(Time end) {
        Time next = never;
        for (const auto& worker : workers_) next = std::min(next, worker->poll_timeout());
        if (next > end) throw std::runtime_error("a sum did not complete");
        now_ = std::max(now_, next);
        for (const auto& worker : workers_) {
            if (worker->poll_timeout() <= now_) worker->handle_timeout(now_);
        }
        collect();
    }

    void deliver() {
        now_ += std::chrono::microseconds(1);
        Packet packet = std::move(packets_.front());
        packets_.pop_front();
        const auto size = static_cast<std::uint32_t>(packet.bytes.size());
        packet.bytes.resize(buffer_.size());  // the switch may turn a FLUSH into a longer gradient
        protocol::PacketBuffer packet_buffer{.data = packet.bytes.data(),
                                             .size = size,
                                             .capacity = static_cast<std::uint32_t>(packet.bytes.size()),
                                             .verdict = {}};
        switch_.handle_packet(packet_buffer, now_);
        packet.bytes.resize(packet_buffer.size);
        if (packet_buffer.verdict.route == protocol::Route::up) server_.handle_packet(packet.bytes, false, now_);
        if (packet_buffer.verdict.route == protocol::Route::down) to_workers(packet);
        collect();
    }
    void to_workers(Packet& packet) {
        for (std::uint16_t rank = 0; rank < workers_.size(); ++rank) {
            if (packet.worker == ATP_WORKER_ALL || packet.worker == rank) {
                workers_[rank]->handle_packet(packet.bytes, false, now_);
            }
        }
    }

    ReducerConfig config_;
    Membership membership_;
    protocol::Switch switch_;
    protocol::Server server_;
    std::vector<std::unique_ptr<protocol::Worker>> workers_;
    std::vector<tensor::NumberFitter> fitters_;
    std::shared_ptr<const tensor::SpanScales> scales_;  // of the last sum
    std::deque<Packet> packets_;
    Bytes buffer_;
    Time now_{};
    std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Reducer> make_atp(const ReducerConfig& config) { return std::make_unique<AtpReducer>(config); }

}  // namespace atp::accuracy
