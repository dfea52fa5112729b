// SPDX-License-Identifier: Apache-2.0
// A reliable byte stream between two hosts, for the systems with which ATP is compared.
//
// Both transports share one state machine. Segments fill an MTU of 1,500 bytes. The receiver acknowledges every second
// segment. It acknowledges a segment at once if the segment is out of order, or the last that the sender can send now;
// with tcp, also if the segment is marked.
// The sender resends a segment after three newer segments have arrived, or after a timeout. Each flow keeps few bytes
// in its host's queue, as TCP small queues and network cards with queue pairs do. Flows and programs therefore share
// the link of a host.
//
//   rdma: models RDMA over Converged Ethernet with PFC. The window is constant, twice the bandwidth-delay product, and
//     no queue drops packets of the flow. Not modelled: effects of pauses on other flows (head-of-line blocking,
//     storms) and DCQCN.
//   tcp: slow start; the window is halved at most once per window, for loss or ECN; one segment after a timeout. Not
//     modelled: handshakes, receive windows, pacing, CUBIC's growth.
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

// A part of the stream, delivered as a whole.
struct Message {
    std::uint64_t bytes = 0;
    std::uint32_t label = 0;  // chosen by the caller: the bucket
    std::uint32_t step = 0;   // chosen by the caller: the step of its procedure
    std::uint64_t word = 0;   // represents the contents: the sums of words are checked instead of sums of tensors
};

// One direction of data between two hosts, with its acknowledgements.
//
// Ownership: owns the state of both ends. Borrows the objects in Shared.
// Calling order: send() for messages; handle_packet() for each packet of this flow at either end; on_wake() for its
//   events. After each call, poll_received() until it returns nothing. The flow transmits by itself.
// Failure: none. The flow resends without limit.
class Flow {
  public:
    struct Ends {
        NodeId from = 0;
        NodeId to = 0;
    };
    // `number` identifies the flow within its program, and is also the number of its event.
    Flow(const Shared& shared, ProgramId program, std::uint32_t number, const Ends& ends, Transport transport);

    // Queues the message behind messages of the same or a lower rank, and before messages of a higher rank. A message
    // that the flow has begun to send is completed first.
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
        bool resent = false;  // excluded from round-trip measurement, and from loss detection by newer segments
    };
    struct Waiting {
        Message message;
        std::uint32_t rank = 0;
        std::uint64_t left = 0;  // bytes not yet cut into segments
    };
    struct Begun {
        Message message;
        std::uint64_t end = 0;  // one past its last segment
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
    HostQueue at_host_;  // bytes in the sender's host queue

    // Sender. Segments are numbered from 0.
    std::deque<Waiting> waiting_;  // the first message may be partly sent
    std::deque<Sent> sent_;        // from the oldest unacknowledged segment on
    std::deque<std::uint64_t> lost_;
    std::uint64_t oldest_ = 0;
    std::uint64_t scanned_ = 0;       // segments before this one were checked for loss
    std::uint64_t highest_seen_ = 0;  // one past the newest segment known to have arrived
    std::uint64_t in_flight_ = 0;
    std::uint64_t recovery_until_ = 0;  // no further halving until this segment is acknowledged
    double window_;
    double slow_start_until_;
    Duration smoothed_{};
    Duration variation_{};
    unsigned backoff_ = 0;
    Time timer_ = never;
    Time woken_at_ = never;  // earliest scheduled event

    // Receiver.
    std::deque<Begun> begun_;  // used by both ends: the sender appends, the receiver delivers
    std::deque<Message> received_;
    std::uint64_t expected_ = 0;
    std::deque<bool> arrived_;  // from expected_ on
    unsigned unacknowledged_ = 0;
    bool echo_ = false;

    FlowCounters counters_;
};

}  // namespace atp::sim
