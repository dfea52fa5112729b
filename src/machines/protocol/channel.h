// SPDX-License-Identifier: Apache-2.0
// Configuration of a channel. All members must agree on it before the first packet.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "protocol/aggregator_index.h"
#include "protocol/audit.h"
#include "protocol/index_rule.h"
#include "wire/format.h"

namespace atp::protocol {

// Default limit of the packets that a channel has in flight: the largest power of two within 256 KiB, from 8 to 256.
// More packets would only wait in queues, and delay those of other channels there.
[[nodiscard]] constexpr std::uint32_t usual_window(std::uint32_t lanes) {
    constexpr std::uint32_t bytes = 256U << 10U;
    const std::uint32_t packet = ATP_HEADER_BYTES + lanes * ATP_LANE_BYTES;
    return std::clamp(std::bit_floor(bytes / packet), 8U, 256U);
}

// Slots of a channel that has at most `packets` in flight. For some two round trips, a lost fragment keeps its slot and
// the slots of all later fragments. With four slots for each packet, new fragments start meanwhile.
[[nodiscard]] constexpr std::uint32_t slots_for(std::uint32_t packets) {
    return std::min(packets * slots_per_packet, 1U << ATP_WINDOW_LOG2_MAX);
}

// A channel is one independent stream of a job. It has its own sequence numbers, window, congestion state and server.
struct ChannelConfig {
    std::uint32_t job = 0;
    std::uint64_t token = 0;  // random for each incarnation, never 0; packets with another one are `forged`
    std::uint16_t channel = 0;
    std::uint16_t lanes = 62;            // of a fragment, including the audit lane; fixed for the job
    std::uint8_t window_log2 = 8;        // W = 2^window_log2 slots; a worker is at most W ahead of its ACKs
    bool audit = false;                  // the last lane carries the audit word
    std::uint32_t aggregators = 4096;    // number of indices: size of the smallest table on the path
    std::uint32_t first_seq = 0;         // first sequence number
    const IndexRule* indices = nullptr;  // borrowed; nullptr: the hash of the protocol

    [[nodiscard]] constexpr std::uint32_t window() const { return 1U << window_log2; }
    [[nodiscard]] constexpr std::uint32_t slot(std::uint32_t seq) const { return seq & (window() - 1U); }
    // Slots seq, seq + B, seq + 2 B ... use the aggregator index of one base slot.
    [[nodiscard]] constexpr std::uint32_t base_slots() const {
        return indices != nullptr ? indices->base_slots(window()) : usual_base_slots(window());
    }
    [[nodiscard]] constexpr std::uint32_t base_slot(std::uint32_t seq) const { return seq & (base_slots() - 1U); }
    // Lanes that carry elements of a tensor.
    [[nodiscard]] constexpr std::uint16_t payload_lanes() const {
        return static_cast<std::uint16_t>(lanes - (audit ? 1 : 0));
    }
    [[nodiscard]] constexpr std::uint32_t index(std::uint32_t seq, std::uint32_t attempt) const {
        const std::uint32_t base = base_slot(seq);
        if (indices != nullptr) return indices->index(*this, base, attempt);
        return aggregator_index(index_seed(job, token, channel), base, attempt, aggregators);
    }
    // Header of a packet about fragment `seq` that concerns all workers. The other fields are 0.
    [[nodiscard]] constexpr atp_header header_of(std::uint8_t type, std::uint32_t seq) const {
        atp_header header{};
        header.version = ATP_VERSION;
        header.type = type;
        header.window_log2 = window_log2;
        header.job = job;
        header.channel = channel;
        header.worker = ATP_WORKER_ALL;
        header.token = token;
        header.seq = seq;
        header.peer = ATP_WORKER_ALL;
        return header;
    }
    [[nodiscard]] constexpr std::uint32_t audit_of(std::uint32_t seq, std::uint32_t worker) const {
        return audit_word(job, token, channel, seq, worker);
    }
    // Of a result, which a multicast group may see: it tells nothing of the token.
    [[nodiscard]] constexpr std::uint32_t result_audit_of(std::uint32_t seq, std::uint32_t worker) const {
        return audit_word(job, 0, channel, seq, worker);
    }
};

}  // namespace atp::protocol
