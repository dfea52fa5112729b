// SPDX-License-Identifier: Apache-2.0
// For any sequence of tensors, answers and pauses, a worker sends no more than its window and writes only into its
// tensors. It ends each tensor exactly once and in order.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "input.h"
#include "packets.h"
#include "protocol/worker.h"
#include "require.h"
#include "wire/ack_list.h"

namespace atp::fuzz {
namespace {

constexpr std::size_t most_steps = 600;
constexpr std::uint32_t tensors_at_once = 4;
constexpr std::uint32_t probe_burst = 3;

protocol::WorkerConfig config_for(const protocol::Membership& members) {
    protocol::WorkerConfig config;
    config.channel = small_channel;
    config.rank = 1;
    config.place = members.place(1);
    config.probe_burst = probe_burst;
    config.tensors = tensors_at_once;
    return config;
}

// A tensor of unscaled integers.
class PlainTensor final : public protocol::PlainTensor {
  public:
    explicit PlainTensor(std::size_t elements) : lanes_(elements * ATP_LANE_BYTES) {}

    [[nodiscard]] std::uint64_t size() const override { return lanes_.size() / ATP_LANE_BYTES; }
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        std::ranges::copy(std::span(lanes_).subspan(first * ATP_LANE_BYTES, lanes.size()), lanes.begin());
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        std::ranges::copy(lanes, std::span(lanes_).subspan(first * ATP_LANE_BYTES, lanes.size()).begin());
    }

  private:
    std::vector<std::byte> lanes_;
};

// Buffers that have exactly the size of the tensor, so that a sanitizer detects a write past the end.
struct Operation {
    Operation(std::size_t elements, float value, bool is_plain)
        : input(elements, value), output(elements), plain_tensor(elements), plain(is_plain) {}
    [[nodiscard]] protocol::Tensor& used() {
        if (plain) return plain_tensor;
        return tensor;
    }

    std::vector<float> input;
    std::vector<float> output;
    protocol::FloatTensor tensor{input, output, 1.0F};
    PlainTensor plain_tensor;
    bool plain;
};

class Story {
  public:
    explicit Story(Input& input) : input_(input), members_(some_membership(input)), worker_(config_for(members_)) {}

    void run() {
        for (std::size_t step = 0; !input_.empty() && step < most_steps; ++step) {
            switch (input_.below(8)) {
                case 0: submit(); break;
                case 1: now_ += std::chrono::microseconds(input_.word() % 3000); break;
                case 2: worker_.handle_timeout(now_); break;
                case 3: take_packets(); break;
                case 4: take_events(); break;
                case 5: handle(input_.some_bytes(100)); break;
                default: handle(answer()); break;
            }
            require(worker_.next_seq() - worker_.expected() <= small_channel.window(),
                    "the fragments in flight fit in the window");
        }
        take_packets();
        take_events();
    }

  private:
    void submit() {
        const std::size_t elements = input_.below(20);
        const std::uint32_t kind = input_.below(8);
        const float value = kind == 0 ? 1e30F : 1.0F;
        const bool hurried = input_.below(8) == 0;
        operations_.push_back(std::make_unique<Operation>(elements, value, kind == 1));
        const auto deadline = hurried ? now_ + std::chrono::milliseconds(input_.byte()) : never;
        const auto number = worker_.submit(operations_.back()->used(), now_, deadline);
        if (!number) {
            operations_.pop_back();
            return;
        }
        require(*number == operations_.size() - 1, "tensors are numbered in the order of submit()");
        require(operations_.size() - ended_ <= tensors_at_once, "the queue of tensors is bounded");
    }

    Bytes list_of_acks() {
        wire::AckList list;
        for (std::uint32_t left = 1 + input_.below(wire::max_listed_acks); left != 0; --left) {
            atp_header header = some_gradient(input_, small_channel, members_, worker_.expected() - 2, 8);
            header.type = ATP_TYPE_ACK;
            header.lanes = ATP_DTYPE_NONE;
            header.argument = header.index;
            header.flags = static_cast<std::uint16_t>(input_.word());
            list.add(testing::make_packet(header));
        }
        return {list.packet().begin(), list.packet().end()};
    }

    Bytes answer() {
        if (input_.below(8) == 0) return list_of_acks();
        atp_header header = some_gradient(input_, small_channel, members_, worker_.expected() - 2, 8);
        const std::uint32_t kind = input_.below(4);
        header.type = kind == 0 ? ATP_TYPE_NACK : kind == 1 ? ATP_TYPE_WAIT : ATP_TYPE_ACK;
        header.lanes = testing::lanes_field(header.type, kind == 0   ? ATP_DTYPE_INT32
                                                         : kind == 1 ? ATP_DTYPE_NONE
                                                                     : ATP_DTYPE_FLOAT32);
        if (kind == 3 && !operations_.empty() && operations_.back()->plain) header.lanes = ATP_INT32_LANES;
        header.argument = header.index;
        if (kind == 0 && input_.below(2) == 0) header.lanes = ATP_DTYPE_FLOAT32;
        if (input_.below(2) == 0) header.flags = static_cast<std::uint16_t>(input_.word() & ATP_FLAG_ALL);
        if (input_.below(3) == 0) mutate(input_, header);
        return to_packet(input_, header, input_.word(), small_channel.lanes);
    }

    void handle(Bytes bytes) { worker_.handle_packet(bytes, input_.below(8) == 0, now_); }

    void take_packets() {
        std::array<std::byte, ATP_HEADER_BYTES + 2 * ATP_LANE_BYTES> buffer{};
        std::size_t packets = 0;
        while (const auto size = worker_.poll_transmit(buffer, now_)) {
            require(++packets <= 2 * small_channel.window() + probe_burst,
                    "new gradients, resends and PROBEs are bounded");
            wire::Packet packet;
            require(wire::decode({buffer.data(), *size}, packet) == wire::DecodeError::none,
                    "every packet that the worker sends decodes");
            const bool known = packet.header.type == ATP_TYPE_GRADIENT || packet.header.type == ATP_TYPE_PROBE;
            require(known, "the worker sends only gradients and PROBEs");
            const bool plain = (packet.header.flags & ATP_FLAG_PLAIN) != 0;
            require(!plain || packet.header.lanes == ATP_INT32_LANES, "packets of PLAIN fragments have int32 lanes");
            require(packet.header.seq - worker_.expected() < small_channel.window(),
                    "packets belong to fragments in the window");
        }
    }

    void take_events() {
        while (const auto event = worker_.poll_event()) {
            require(event->tensor == ended_, "tensors end in order");
            require(++ended_ <= operations_.size(), "no tensor ends twice");
            require(event->kind == protocol::WorkerEvent::Kind::completed || worker_.failed(),
                    "a tensor that did not complete means that the worker failed");
        }
    }

    Input& input_;
    protocol::Membership members_;
    protocol::Worker worker_;
    Time now_{};
    std::vector<std::unique_ptr<Operation>> operations_;
    std::size_t ended_ = 0;
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
