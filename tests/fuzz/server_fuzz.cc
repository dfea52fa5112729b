// SPDX-License-Identifier: Apache-2.0
// For any sequence of packets and pauses, the server sends an ACK of a fragment only if the sum includes every worker
// exactly once. The server queues no more answers than it allocated.
//
// Worker r contributes 2^r. A packet of several workers has the sum of their contributions. A result therefore shows
// which workers it includes and how often.
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "input.h"
#include "packets.h"
#include "protocol/server.h"
#include "require.h"

namespace atp::fuzz {
namespace {

constexpr std::size_t most_answers = 1000;  // far above the capacity of the queue, 2W + 8 * units + 64
constexpr std::size_t most_packets = 600;
constexpr unsigned other_scale = 3;  // a scale exponent other than the job's

class Story {
  public:
    explicit Story(Input& input)
        : input_(input),
          members_(some_membership(input)),
          server_({.channel = small_channel, .scale = 1, .repeat_interval = std::chrono::milliseconds(1)}, members_) {}

    void run() {
        for (std::size_t packets = 0; !input_.empty() && packets < most_packets; ++packets) {
            switch (input_.below(8)) {
                case 0: now_ += std::chrono::microseconds(input_.word() % 3000); break;
                case 1: take_answers(); break;
                case 2: handle_stranger(); break;
                case 3: handle(probe()); break;
                default: handle(gradient()); break;
            }
        }
        take_answers();
    }

  private:
    [[nodiscard]] std::uint32_t all_workers() const { return (1U << members_.workers()) - 1U; }

    // Returns the ranks that the header includes, as bits.
    [[nodiscard]] std::uint32_t ranks_of(const atp_header& header) const {
        std::uint32_t ranks = 0;
        for (std::uint16_t rank = 0; rank < members_.workers(); ++rank) {
            const protocol::Place& place = members_.place(rank);
            const bool in_unit = (header.bitmap1 >> place.unit & 1U) != 0;
            const bool whole = (header.flags & ATP_FLAG_WHOLE) != 0;
            if (in_unit && (whole || (header.bitmap0 >> place.member & 1U) != 0)) ranks |= 1U << rank;
        }
        return ranks;
    }

    atp_header first_header() { return some_gradient(input_, small_channel, members_, server_.base() - 6, 12); }

    Bytes gradient() {
        atp_header header = first_header();
        const std::uint8_t kind = input_.byte();
        if ((kind & 1U) != 0) header.bitmap0 = input_.byte() & header.mask0;
        if ((kind & 2U) != 0) mutate(input_, header);
        if ((kind & 4U) != 0) header.flags = static_cast<std::uint16_t>(input_.word() & ATP_FLAG_ALL);
        if ((kind & 8U) != 0) header.lanes = ATP_FLOAT32_LANES;
        if ((kind & 16U) != 0) header.lanes = ATP_INT16_LANES;
        header.scale = (kind & 32U) != 0 ? ATP_SCALE_ONE + other_scale : protocol::scale_of_job;
        const std::uint32_t ranks = ranks_of(header);
        const bool floats = atp_lanes_type(&header) == ATP_DTYPE_FLOAT32;
        const std::uint32_t integer = header.scale == protocol::scale_of_job ? ranks : ranks << other_scale;
        std::uint32_t value = floats ? std::bit_cast<std::uint32_t>(static_cast<float>(ranks)) : integer;
        if (atp_lanes_type(&header) == ATP_DTYPE_INT16) value |= integer << 16U;
        // lanes of a packet with OVERFLOW have no meaning: the server must not add them
        if ((header.flags & ATP_FLAG_OVERFLOW) != 0 && !floats) value = ~value;
        return to_packet(input_, header, value, small_channel.lanes);
    }

    Bytes probe() {
        atp_header header = first_header();
        header.type = ATP_TYPE_PROBE;
        header.lanes = ATP_DTYPE_NONE;
        if (input_.below(4) == 0) mutate(input_, header);
        // the lanes of an arbitrary gradient would not match the rule of 2^r
        if (header.type == ATP_TYPE_GRADIENT) header.type = ATP_TYPE_PROBE;
        return to_packet(input_, header, 0, small_channel.lanes);
    }

    // Sends arbitrary bytes. Packets of this job are excepted, because their lanes would not match the rule of 2^r.
    void handle_stranger() {
        Bytes bytes = input_.some_bytes(100);
        wire::Packet packet;
        if (wire::decode(bytes, packet) == wire::DecodeError::none && packet.header.token == small_channel.token)
            return;
        const std::uint64_t before = server_.counters().refused + server_.counters().forged;
        server_.handle_packet(bytes, false, now_);
        require(server_.counters().refused + server_.counters().forged == before + 1,
                "arbitrary bytes are counted as refused or forged");
    }

    void handle(Bytes bytes) {
        wire::Packet packet;
        if (wire::decode(bytes, packet) == wire::DecodeError::none && packet.header.type == ATP_TYPE_GRADIENT) {
            sent_[packet.header.seq] |= ranks_of(packet.header);
        }
        server_.handle_packet(bytes, input_.below(8) == 0, now_);
    }

    void take_answers() {
        std::array<std::byte, 256> buffer{};
        std::size_t answers = 0;
        while (const auto sent = server_.poll_transmit(buffer)) {
            require(++answers <= most_answers, "the queue of answers is bounded");
            require_answer({buffer.data(), sent->size});
        }
        require(!server_.has_transmit(), "no answer is left");
    }

    void require_answer(std::span<std::byte> bytes) {
        wire::Packet packet;
        require(wire::decode(bytes, packet) == wire::DecodeError::none, "an answer is a packet");
        if (packet.header.type != ATP_TYPE_ACK) return;
        const bool plain = (packet.header.flags & ATP_FLAG_PLAIN) != 0;
        require(plain == (atp_lanes_type(&packet.header) == ATP_DTYPE_INT32),
                "an ACK has int32 lanes if and only if it is PLAIN");
        require(sent_[packet.header.seq] == all_workers(),
                "every worker has sent a packet of an acknowledged fragment");
        for (std::size_t lane = 0; lane < packet.lane_count(); ++lane) {
            const std::uint32_t bits = wire::load_u32(packet.lanes.data() + lane * ATP_LANE_BYTES);
            require(sums_all_workers(packet.header, bits), "the result includes every worker exactly once");
        }
    }

    [[nodiscard]] bool sums_all_workers(const atp_header& header, std::uint32_t lane) const {
        const std::uint32_t scaled =
            header.scale == protocol::scale_of_job ? all_workers() : all_workers() << other_scale;
        if (atp_lanes_type(&header) == ATP_DTYPE_INT16) return lane == (scaled << 16U | scaled);
        if (atp_lanes_type(&header) == ATP_DTYPE_INT32) return lane == scaled;
        return std::bit_cast<float>(lane) == static_cast<float>(all_workers());
    }

    Input& input_;
    protocol::Membership members_;
    protocol::Server server_;
    Time now_{};
    std::map<std::uint32_t, std::uint32_t> sent_;  // fragment -> ranks that any packet has included
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
