// SPDX-License-Identifier: Apache-2.0
// One worker without a network: the test supplies tensors and the server's answers, and reads packets as a list.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/worker.h"
#include "support/gradients.h"
#include "support/packets.h"

namespace atp::testing {

struct WorkerPacket {
    atp_header header{};
    Bytes bytes;

    [[nodiscard]] bool is(atp_type type) const { return header.type == type; }
    [[nodiscard]] bool has(atp_flag flag) const { return (header.flags & flag) != 0; }
};

// Worker 1 in a star of three workers, with two lanes per fragment and scale 1.
class WorkerBench {
  public:
    explicit WorkerBench(const protocol::WorkerConfig& worker_config = default_config())
        : config(worker_config), worker(worker_config) {}

    [[nodiscard]] static protocol::WorkerConfig default_config() {
        protocol::WorkerConfig config;
        config.channel = {.job = 1, .token = 0x5eed, .channel = 2, .lanes = 2, .window_log2 = 4, .aggregators = 1024};
        config.rank = 1;
        config.place = members().place(1);
        config.senders = protocol::SenderMasks(members(), 1);
        config.scale = 1;
        return config;
    }
    [[nodiscard]] static const protocol::Membership& members() {
        static const protocol::Membership star = *protocol::Membership::star(3);
        return star;
    }

    // Submits a tensor of `values`. Its sums are in `outputs`.
    std::optional<std::uint64_t> submit(std::vector<float> values, Time deadline = never) {
        inputs.push_back(std::move(values));
        outputs.emplace_back(inputs.back().size());
        tensors.emplace_back(inputs.back(), outputs.back(), 1.0F);
        return worker.submit(tensors.back(), now, deadline);
    }
    // Submits a tensor of `fragments` fragments.
    std::optional<std::uint64_t> submit_fragments(std::size_t fragments, Time deadline = never) {
        return submit(std::vector<float>(fragments * config.channel.payload_lanes(), 1.0F), deadline);
    }

    // Every packet that the worker has to send now.
    std::vector<WorkerPacket> packets() {
        std::vector<WorkerPacket> list;
        Bytes buffer(worker.packet_bytes());
        while (const auto size = worker.poll_transmit(buffer, now)) {
            Bytes bytes(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*size));
            if (bytes.size() > ATP_HEADER_BYTES) lanes_sent[header_in(bytes).seq] = lanes_in(bytes).size();
            list.push_back({header_in(bytes), std::move(bytes)});
        }
        return list;
    }
    std::vector<std::uint32_t> sequences() {
        std::vector<std::uint32_t> list;
        for (const WorkerPacket& packet : packets()) list.push_back(packet.header.seq);
        return list;
    }
    std::vector<protocol::WorkerEvent> events() {
        std::vector<protocol::WorkerEvent> list;
        while (const auto event = worker.poll_event()) list.push_back(*event);
        return list;
    }

    void handle(Bytes bytes, bool congested = false) { worker.handle_packet(bytes, congested, now); }
    [[nodiscard]] atp_header answer(atp_type type, atp_dtype dtype, std::uint32_t seq, unsigned flags = 0) const {
        atp_header header = gradient_of(config.channel, members(), config.rank, seq);
        header.type = static_cast<std::uint8_t>(type);
        header.lanes = lanes_field(header.type, static_cast<std::uint8_t>(dtype));
        header.flags = static_cast<std::uint16_t>(flags);
        header.argument = type == ATP_TYPE_ACK ? header.index : 0;
        return header;
    }
    // An ACK with as many lanes as the gradient of `seq`, or with the usual number if the worker sent no such gradient.
    [[nodiscard]] Bytes ack(std::uint32_t seq, float value = 3.0F, unsigned flags = 0) const {
        const auto sent = lanes_sent.find(seq);
        Bytes bytes = make_float_packet(
            answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, seq, flags),
            std::vector<float>(sent == lanes_sent.end() ? config.channel.lanes : sent->second, value));
        if (!config.channel.audit) return bytes;
        std::uint32_t audit = 0;
        for (std::uint32_t rank = 0; rank < members().workers(); ++rank)
            audit += config.channel.result_audit_of(seq, rank);
        wire::store_u32(bytes.data() + bytes.size() - ATP_LANE_BYTES, audit);
        return bytes;
    }
    [[nodiscard]] Bytes nack(std::uint32_t seq, atp_dtype dtype = ATP_DTYPE_INT32, unsigned flags = 0) const {
        return make_packet(answer(ATP_TYPE_NACK, dtype, seq, flags));
    }
    [[nodiscard]] Bytes wait(std::uint32_t seq, std::uint32_t units = 0, std::uint32_t missing = 0) const {
        atp_header header = answer(ATP_TYPE_WAIT, ATP_DTYPE_NONE, seq);
        header.bitmap1 = units;
        header.bitmap0 = missing;
        return make_packet(header);
    }
    [[nodiscard]] Bytes mismatch(std::uint32_t seq) const {
        atp_header header = answer(ATP_TYPE_WAIT, ATP_DTYPE_NONE, seq);
        header.argument = ATP_WAIT_MISMATCHED;
        return make_packet(header);
    }
    void expire() {
        now = std::max(now, worker.poll_timeout());
        worker.handle_timeout(now);
    }

    protocol::WorkerConfig config;
    protocol::Worker worker;
    Time now{std::chrono::seconds(1)};
    std::deque<std::vector<float>> inputs;
    std::deque<std::vector<float>> outputs;
    std::deque<protocol::FloatTensor> tensors;
    std::map<std::uint32_t, std::size_t> lanes_sent;  // fragment -> lanes of its gradient
};

}  // namespace atp::testing
