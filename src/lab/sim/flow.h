// SPDX-License-Identifier: Apache-2.0
// A reliable stream of bytes between two hosts, for the systems that ATP is compared with.
//
// Two transports, one machine. Segments fill a 1,500-byte MTU; each second one is acknowledged, others at once where
// they are out of order, marked, or the last that the sender may send. Three newer segments seen, or a timeout, and a
// segment is sent again. A host keeps few of a flow's bytes in its queue, as TCP small queues do and network cards that
// serve queue pairs in turn, so flows and programs share a host's link.
//
//   rdma  stands for RDMA over Converged Ethernet with PFC: a window of twice the bandwidth-delay product that never
//         changes, and no queue drops its packets. Left out: what pauses do to bystanders (head-of-line blocking,
//         storms) and DCQCN.
//   tcp   a window with slow start, halved at most once a window for loss or ECN, one segment after a timeout. Left
//   out: handshakes, receive windows, pacing, CUBIC's growth.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "sim/counters.h"
#include "sim/host_queue.h"
#include "sim/program.h"

namespace atp::sim {

// A part of the stream that means something to those who use it.
struct Message {
    std::uint64_t bytes = 0;
    std::uint32_t label = 0;  // of what it is about,
    std::uint32_t step = 0;   // and the place in its procedure
    std::uint64_t word = 0;   // stands for the contents: sums of words are checked in place of sums of tensors
};

// Calling order: send() messages; handle_packet() for each packet of this flow at either of its ends, and on_wake() for
// its events; after each, poll_received() until it returns nothing. It transmits by itself. Owns: both ends. Borrows
// what its program shares. Failure: none; it tries for ever.
class Flow {
  public:
    struct Ends {
        NodeId from = 0;
        NodeId to = 0;
    };
    // `number` tells the program's flows apart: it is their event, too.
    Flow(const Shared& shared, ProgramId program, std::uint32_t number, const Ends& ends, Transport transport);

    // Behind those of the same or a lower rank that wait, in front of those of a higher one. What has begun is
    // finished.
    void send(const Message& message, std::uint32_t rank, Time now);
    void handle_packet(const Arrival& arrival, Time now);
    void on_wake(Time now);
    std::optional<Message> poll_received();

    [[nodiscard]] static std::uint32_t number_of(std::span<const std::byte> packet);
    [[nodiscard]] static std::string describe(std::span<const std::byte> packet);
    [[nodiscard]] const Ends& ends() const { return ends_; }
    [[nodiscard]] const FlowCounters& counters() const { return counters_; }
    [[nodiscard]] std::uint64_t waiting_messages() const { return waiting_.size(); }

  private:
    enum class State : std::uint8_t { sent, lost, seen };

    struct Sent {
        Time at{};
        std::uint32_t bytes = 0;
        State state = State::sent;
        bool resent = false;  // its round trip says nothing, and it is not taken for lost again
    };
    struct Waiting {
        Message message;
        std::uint32_t rank = 0;
        std::uint64_t left = 0;  // bytes not yet cut into segments
    };
    struct Begun {
        Message message;
        std::uint64_t end = 0;  // the segment behind its last
    };

    void transmit(Time now);
    [[nodiscard]] bool may_send() const;
    std::uint64_t next_segment(Time now);
    void cut_segment(Time now);
    void send_segment(std::uint64_t number, Time now);
    void send_packet(NodeId from, NodeId to, const struct Segment& segment, std::uint32_t payload, Time now);

    void handle_data(const struct Segment& segment, bool congested, Time now);
    void deliver();
    void acknowledge(std::uint64_t seen, Time now);

    void handle_ack(const struct Segment& segment, Time now);
    std::uint64_t note_seen(std::uint64_t number, Time now);
    void find_lost();
    void halve();
    void grow(std::uint64_t segments);
    void measure(Duration round_trip);
    void on_timeout(Time now);
    [[nodiscard]] Duration timeout() const;
    void arm(Time now);
    void wake_by(Time time);

    [[nodiscard]] std::uint64_t next() const { return oldest_ + sent_.size(); }
    [[nodiscard]] Sent& sent(std::uint64_t number) { return sent_[number - oldest_]; }

    Shared shared_;
    ProgramId program_;
    std::uint32_t number_;
    Ends ends_;
    Transport transport_;
    LinkId uplink_;
    HostQueue at_host_;  // of the sender, in bytes

    // The sender's end. Segments are numbered from 0.
    std::deque<Waiting> waiting_;  // the first may have begun
    std::deque<Sent> sent_;        // from the oldest without acknowledgement
    std::deque<std::uint64_t> lost_;
    std::uint64_t oldest_ = 0;
    std::uint64_t scanned_ = 0;       // everything before it was looked at for being lost
    std::uint64_t highest_seen_ = 0;  // behind the newest segment known to have arrived
    std::uint64_t in_flight_ = 0;
    std::uint64_t recovery_until_ = 0;  // at most one halving a window
    double window_;
    double slow_start_until_;
    Duration smoothed_{};
    Duration variation_{};
    unsigned backoff_ = 0;
    Time timer_ = never;
    Time woken_at_ = never;  // the earliest event on the way

    // The receiver's end.
    std::deque<Begun> begun_;  // of both: cut there, delivered here
    std::deque<Message> received_;
    std::uint64_t expected_ = 0;
    std::deque<bool> arrived_;  // from the expected one
    unsigned unacknowledged_ = 0;
    bool echo_ = false;

    FlowCounters counters_;
};

}  // namespace atp::sim
