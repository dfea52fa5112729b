// SPDX-License-Identifier: Apache-2.0
// For any sequence of packets and pauses, the switch stays within its table, counts every packet exactly once, and
// sends only valid packets.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <vector>

#include "input.h"
#include "packets.h"
#include "protocol/switch.h"
#include "require.h"

namespace atp::fuzz {
namespace {

constexpr std::size_t buffer_bytes = 128;
constexpr std::size_t most_packets = 400;

class Story {
  public:
    explicit Story(Input& input)
        : input_(input),
          members_(some_membership(input)),
          machine_({.aggregators = 3, .lanes = 4, .jobs = 2, .ageing = std::chrono::milliseconds(1)}) {
        const auto level = static_cast<std::uint8_t>(input.below(2));
        require(machine_.admit(small_channel.job, small_channel.token, level), "the job is admitted");
    }

    void run() {
        while (!input_.empty() && packets_ < most_packets) {
            switch (input_.below(8)) {
                case 0: now_ += std::chrono::microseconds(input_.word() % 5000); break;
                case 1: handle_batch(); break;
                case 2: add(input_.some_bytes(buffer_bytes)); break;
                case 3: machine_.clear(); break;
                default: add(packet()); break;
            }
        }
        handle_batch();
        require_every_packet_counted();
    }

  private:
    Bytes packet() {
        atp_header header = some_gradient(input_, small_channel, members_, small_channel.first_seq, 8);
        const std::uint8_t kind = input_.byte();
        if (kind % 4 == 1) mutate(input_, header);
        if (kind % 4 == 2) as_answer(header);
        // The lanes are large numbers, so that sums exceed 32 bits.
        return to_packet(input_, header, static_cast<std::uint32_t>(input_.byte()) << 24U, 2);
    }

    void as_answer(atp_header& header) {
        const std::uint32_t kind = input_.below(3);
        header.type = kind == 0 ? ATP_TYPE_ACK : kind == 1 ? ATP_TYPE_NACK : ATP_TYPE_FLUSH;
        header.lanes = testing::lanes_field(header.type, kind == 0   ? ATP_DTYPE_FLOAT32
                                                         : kind == 1 ? ATP_DTYPE_INT32
                                                                     : ATP_DTYPE_NONE);
        header.hop = static_cast<std::uint8_t>(input_.below(2));
        if (kind == 1) header.flags = ATP_FLAG_BYPASS;
    }

    void add(Bytes bytes) {
        const auto size = static_cast<std::uint32_t>(bytes.size());
        const std::size_t room = input_.below(16) == 0 ? bytes.size() : std::max(buffer_bytes, bytes.size());
        bytes.resize(room);
        buffers_.push_back(std::move(bytes));
        batch_.push_back({.data = buffers_.back().data(),
                          .size = size,
                          .capacity = static_cast<std::uint32_t>(room),
                          .congested = input_.below(4) == 0,
                          .verdict = {}});
        ++packets_;
    }

    void handle_batch() {
        machine_.handle_batch(batch_, now_);
        for (const protocol::PacketBuffer& packet_buffer : batch_) {
            if (packet_buffer.verdict.route != protocol::Route::drop) require_packet(packet_buffer);
        }
        batch_.clear();
        buffers_.clear();
        require(machine_.occupied() <= machine_.config().aggregators,
                "at most all aggregators of the table are occupied");
    }

    static void require_packet(const protocol::PacketBuffer& packet_buffer) {
        require(packet_buffer.size <= packet_buffer.capacity, "the size of a packet is at most its capacity");
        wire::Packet packet;
        require(wire::decode({packet_buffer.data, packet_buffer.size}, packet) == wire::DecodeError::none,
                "every forwarded packet decodes");
        require(packet.header.token == small_channel.token, "every forwarded packet belongs to the admitted job");
        const bool up = wire::goes_up(packet.header.type);
        require(up == (packet_buffer.verdict.route == protocol::Route::up),
                "gradients, PROBEs and READYs go up, answers go down");
    }

    void require_every_packet_counted() const {
        const protocol::SwitchCounters& counters = machine_.counters();
        std::uint64_t counted = counters.forged + counters.no_room;
        counted = std::accumulate(counters.events.begin(), counters.events.end(), counted);
        counted = std::accumulate(counters.refused.begin(), counters.refused.end(), counted);
        require(counted == packets_, "every packet is counted once");
    }

    Input& input_;
    protocol::Membership members_;
    protocol::Switch machine_;
    Time now_{};
    std::deque<Bytes> buffers_;
    std::vector<protocol::PacketBuffer> batch_;
    std::size_t packets_ = 0;
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
