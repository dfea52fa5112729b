// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/ring.h"
#include "base/time.h"
#include "protocol/archive.h"
#include "protocol/breaks.h"
#include "protocol/channel.h"
#include "protocol/congestion_window.h"
#include "protocol/home_sum.h"
#include "protocol/loss_detector.h"
#include "protocol/membership.h"
#include "protocol/operation_queue.h"
#include "protocol/ready_notice.h"
#include "protocol/round_trip.h"
#include "protocol/sender_masks.h"
#include "protocol/tensor.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

// Largest magnitude of a lane so that no sum of `workers` workers leaves 32 bits (docs/spec/numbers.md#bounded-lanes).
constexpr std::uint32_t bounded_magnitude(unsigned workers) {
    return std::uint32_t{std::numeric_limits<std::int32_t>::max()} / workers;
}

struct WorkerConfig {
    ChannelConfig channel;
    std::uint16_t rank = 0;
    Place place;            // Membership::place(rank)
    SenderMasks senders{};  // of that membership and rank; required if operations have owners, or with audit
    double scale = 1e8;     // of the job, as its server has it
    CongestionConfig congestion;
    // If the oldest fragment has no ACK for this long, the worker sends a PROBE. The timeout doubles at each expiry up
    // to max_timeout. If round trips are longer than min_timeout, it starts higher.
    Duration min_timeout = std::chrono::milliseconds(1);
    Duration max_timeout = std::chrono::milliseconds(200);
    std::uint32_t probe_burst = 8;  // fragments probed at one expiry, the oldest first
    std::uint32_t tensors = 256;    // queued at the same time
    // New fragments leave in groups of about this many packets, which cost the kernels of the path one packet's work.
    // At most a quarter of the congestion window: the rest keeps the path busy.
    std::uint32_t train = 1;
    // A fragment of int32 lanes with a larger magnitude is sent with BYPASS (ATP §B.2). bounded_magnitude(): no sum
    // overflows in a switch, and a switch whose lanes wrap is safe. 0: no limit, and overflows are recovered.
    std::uint32_t bypass_above = 0;
    // Some switch on the path adds only int32 lanes, so the integers of narrow tensors are sent as int32; the results
    // have the same bits (docs/spec/numbers.md#int32-paths). Equal on all workers of the channel.
    bool int32_lanes = false;
    // Packets may be forged, so one that shows a mismatch is only a hint: the worker goes on until confirm_mismatch().
    bool confirms_mismatch = false;
};

// tools/write_events writes the counters of a worker from src/events.toml.
// Of a worker, for each channel.
struct WorkerCounters {
    std::uint64_t sent = 0;             // fragments sent for the first time
    std::uint64_t resent = 0;           // packets sent again
    std::uint64_t resent_newer = 0;     // packets sent again because newer ACKs arrived
    std::uint64_t probes = 0;           // PROBEs sent
    std::uint64_t readies = 0;          // READYs sent
    std::uint64_t acks = 0;             // ACKs that were the first of a fragment
    std::uint64_t stale_acks = 0;       // ACKs of fragments that are not in flight
    std::uint64_t nacks = 0;            // NACKs received
    std::uint64_t waits = 0;            // WAITs received
    std::uint64_t ecn_acks = 0;         // ACKs with the ECN flag
    std::uint64_t echoes = 0;           // CE marks of this worker's downlink, reported upwards
    std::uint64_t halvings = 0;         // halvings of the congestion window
    std::uint64_t float_fragments = 0;  // fragments sent as floats
    std::uint64_t remaps = 0;           // slots that moved to another aggregator
    std::uint64_t bypassed = 0;  // fragments sent around the switches because an element is too large for their sum
    std::uint64_t refused = 0;   // packets dropped: undecodable, or of a shape that this channel or tensor never has
    std::uint64_t forged = 0;    // packets dropped: of another job, token or channel
    std::uint64_t audit_failures = 0;  // results dropped for a wrong audit lane
};

inline constexpr std::array worker_fields{
    counter<&WorkerCounters::sent>("sent"),
    counter<&WorkerCounters::resent>("resent"),
    counter<&WorkerCounters::resent_newer>("resent_newer"),
    counter<&WorkerCounters::probes>("probes"),
    counter<&WorkerCounters::readies>("readies"),
    counter<&WorkerCounters::acks>("acks"),
    counter<&WorkerCounters::stale_acks>("stale_acks"),
    counter<&WorkerCounters::nacks>("nacks"),
    counter<&WorkerCounters::waits>("waits"),
    counter<&WorkerCounters::ecn_acks>("ecn_acks"),
    counter<&WorkerCounters::echoes>("echoes"),
    counter<&WorkerCounters::halvings>("halvings"),
    counter<&WorkerCounters::float_fragments>("float_fragments"),
    counter<&WorkerCounters::remaps>("remaps"),
    counter<&WorkerCounters::bypassed>("bypassed"),
    counter<&WorkerCounters::refused>("refused"),
    counter<&WorkerCounters::forged>("forged"),
    counter<&WorkerCounters::audit_failures>("audit_failures"),
};
// End of the written part.

// End of a tensor: completed or failed.
struct WorkerEvent {
    enum class Kind : std::uint8_t {
        completed,
        timed_out,   // a deadline passed, which ends every incomplete operation of the channel
        mismatched,  // workers run different operations at one position of the stream; no later operation succeeds
    };
    Kind kind = Kind::completed;
    std::uint64_t tensor = 0;  // number that submit() returned
    Duration elapsed{};        // from submit() to the failure; zero if completed
    // For timed_out: the last answer of the server, at `answered_at`. The server then waited for the workers in
    // `missing_*` (one unit, its members); 0: unknown.
    bool answered = false;
    Time answered_at{};
    std::uint32_t missing_units = 0;
    std::uint32_t missing_members = 0;
    std::uint64_t mismatched_tensor = 0;  // for mismatched: the tensor at that position
};

// One worker's end of one channel: sends the fragments of the submitted tensors in order and delivers their sums.
//
// Ownership: owns W slots and the queue of tensors, allocated at construction. Borrows each Tensor until poll_event()
//   returns its event.
// Calling order: submit() tensors. After each submit(), handle_packet() or handle_timeout(), call poll_transmit()
//   until it returns nothing, then poll_event() until it returns nothing. Then sleep until poll_timeout() or a
//   packet. Extra calls do no harm.
// Threads: none. One thread drives one channel.
// Failure: if the deadline of an operation passes, all incomplete operations end with timed_out. If workers run
//   different operations, they end with mismatched. The channel then sends nothing more: the job must form again with a
//   new token. Packets of another job, token, channel or shape are dropped and counted.
class Worker {
  public:
    explicit Worker(const WorkerConfig& config);

    // Some switch on the path adds only int32, so send the integers of narrow tensors in int32 lanes. Call before the
    // first submit().
    void use_int32_lanes() { config_.int32_lanes = true; }

    // Queues a tensor and returns its number, counted from 0. Returns nothing if the tensor is empty or has 2^32
    // fragments or more, if the queue is full, or if the channel has failed.
    [[nodiscard]] std::optional<std::uint64_t> submit(Tensor& tensor, Time now, Time deadline = never);
    // One datagram, borrowed for the call. `congested`: its IP header carried CE.
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now);
    void handle_timeout(Time now);

    // Writes one packet for the server and returns its size, or nothing if no packet is due. `buffer` holds at least
    // packet_bytes().
    std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now);
    // Time of the next handle_timeout(); `never` if nothing is outstanding.
    [[nodiscard]] Time poll_timeout() const;
    // With confirms_mismatch: the oldest tensor at which workers may run different operations, from 0 for the oldest in
    // flight; nullopt: none since the last call.
    [[nodiscard]] std::optional<std::uint64_t> poll_hint();
    // They do, at this tensor.
    void confirm_mismatch(std::uint64_t tensor, Time now);
    // Position of the first fragment of a tensor in flight, counted as poll_hint() does.
    [[nodiscard]] std::uint32_t first_seq_of(std::uint64_t tensor) const {
        return operations_[operations_.first() + tensor].first_seq;
    }
    std::optional<WorkerEvent> poll_event();

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] bool idle() const { return operations_.empty(); }
    [[nodiscard]] std::size_t packet_bytes() const;
    [[nodiscard]] const WorkerConfig& config() const { return config_; }
    [[nodiscard]] const WorkerCounters& counters() const { return counters_; }
    [[nodiscard]] std::uint32_t window_packets() const { return congestion_.window_packets(); }
    [[nodiscard]] std::uint32_t expected() const { return expected_; }  // oldest fragment without ACK
    [[nodiscard]] std::uint32_t next_seq() const { return next_seq_; }  // next fragment to send for the first time
    [[nodiscard]] std::uint32_t index_of(std::uint32_t seq) const { return indices_[config_.channel.slot(seq)]; }

    template <class Archive>
    void persist(Archive& archive);

  private:
    enum class State : std::uint8_t { free, sent, acked };
    enum class Mode : std::uint8_t { aggregated, unaggregated, floats };

    struct Slot {
        Time sent_at{};            // first sending
        std::uint64_t tensor = 0;  // number of its tensor
        State state = State::free;
        Mode mode = Mode::aggregated;
        std::uint8_t sendings = 0;  // gradients and PROBEs of the fragment, modulo 256
        bool resend_queued = false;
        bool probe_queued = false;
        bool resent = false;            // sent more than once: excluded from round-trip measurement
        std::uint8_t resent_as = 0;     // `sending` of the last resend; valid if `resent`
        bool probed = false;            // the timer expired for it: its ACK may answer a PROBE
        std::uint8_t parts = 0;         // packets of its result that are delivered, packet p as bit p
        Delivery delivery{};            // as the tensor says
        bool sends_no_lanes = false;    // another worker sends them, or this one adds its own at home
        bool only_floats = false;       // of a sum for this worker: it has a number that no integer holds
        std::uint8_t overtaken_by = 0;  // fragments of the same owner, from newer_from on, that have an ACK
        std::uint32_t newer_from = 0;   // next fragment at the last sending
    };

    using Entry = OperationQueue::Entry;

    // One of the packets with the floats of a fragment, which have the floats of one rank each.
    struct FloatPart {
        unsigned rank = 0;
        unsigned packet = 0;
    };

    // Floats of a fragment that are left to send.
    struct FloatsLeft {
        bool any = false;
        bool resend = false;
        std::uint32_t seq = 0;
        FloatPart next{};
    };

    // A sequence number that Ring can persist.
    struct QueuedFragment {
        std::uint32_t seq = 0;
        template <class Archive>
        void persist(Archive& archive) {
            archive.value(seq);
        }
    };

    void handle_ack(const wire::Packet& packet, bool congested, Time now);
    void handle_ack_list(const wire::Packet& list, bool congested, Time now);
    void handle_nack(const atp_header& header, Time now);
    void handle_wait(const atp_header& header, Time now);
    void advance(Time now);
    // worker_recovery.cc: fragments whose result does not come.
    enum class Wait : std::uint8_t { first, again };
    void recover_overtaken();
    void wait_for_answer(std::uint32_t seq, Wait wait);
    void ask_for_overtaken(std::uint32_t seq);
    void note_loss();
    void congested_once();
    void exclude_waiting_fragments();
    [[nodiscard]] Duration timeout_jitter(Duration timeout) const;
    void arm(Time now);
    void queue_resend(std::uint32_t seq);
    void queue_probe(std::uint32_t seq);
    void ask_for_oldest();
    void fail(Time now);

    [[nodiscard]] bool in_flight(std::uint32_t seq) const;
    [[nodiscard]] bool is_plain(std::uint32_t seq) const { return owner(seq).plain; }
    void note_demand(std::uint32_t seq) const {
        if (is_plain(seq)) owner(seq).tensor->note_demand();
    }
    [[nodiscard]] bool concerns_me(const atp_header& header) const;
    [[nodiscard]] bool may_send_new();
    [[nodiscard]] bool waits_for_train(std::uint32_t room) const;
    std::uint32_t start_next_fragment(Time now);
    // `part`: only of a fragment that is sent as floats.
    std::size_t write_gradient(std::uint32_t seq, bool resend, FloatPart part, std::span<std::byte> buffer);
    // Both write words and return their number.
    std::size_t load_integers(Slot& slot, const FragmentCut::Range& range, std::span<std::byte> words);
    std::size_t load_floats(atp_header& header, bool resend, FloatPart part, const FragmentCut::Range& range,
                            std::span<std::byte> words);
    std::size_t write_probe(std::uint32_t seq, std::span<std::byte> buffer);
    // worker_delivery.cc: fragments whose result goes to one worker, or comes from one.
    std::size_t write_ready(std::span<std::byte> buffer);
    [[nodiscard]] bool ready_due(bool ended) const;
    [[nodiscard]] const Delivery& delivery_of(std::uint32_t seq) const { return slot(seq).delivery; }
    void note_newer(std::uint32_t seq, const Delivery& delivery);
    void count_newer_from_now(Slot& sent) const { sent.overtaken_by = 0, sent.newer_from = next_seq_; }
    [[nodiscard]] bool is_for_others(const wire::Packet& packet) const;
    void note_mismatch(std::uint32_t seq, Time now);
    void end_mismatched(std::uint64_t tensor, Time now);
    [[nodiscard]] bool ends_as_mismatch(const wire::Packet& packet, Time now);
    [[nodiscard]] atp_header own_header(std::uint8_t type, std::uint32_t seq) const;
    // worker_home.cc: sums for this worker.
    [[nodiscard]] bool may_stay_home(const Delivery& delivery) const;
    [[nodiscard]] bool lacks_own(const atp_header& ack) const;
    [[nodiscard]] bool audit_holds(const wire::Packet& ack) const;
    void start_at_home(std::uint32_t seq);
    void resume_readies(std::uint32_t acked);
    [[nodiscard]] double inverse_scale(std::uint8_t scale) const { return 1.0 / scale_from(scale, config_.scale); }
    // Header of the next packet about a fragment: counts as a sending.
    [[nodiscard]] atp_header header_for(std::uint32_t seq, std::uint8_t type);
    [[nodiscard]] bool ack_fits(const wire::Packet& packet) const;
    // Stores the sums. Returns true if the fragment has its whole result.
    bool deliver(const wire::Packet& packet);
    [[nodiscard]] Slot& slot(std::uint32_t seq) { return slots_[config_.channel.slot(seq)]; }
    [[nodiscard]] const Slot& slot(std::uint32_t seq) const { return slots_[config_.channel.slot(seq)]; }
    // The operation of a fragment that has a slot.
    [[nodiscard]] const Entry& owner(std::uint32_t seq) const { return operations_[slot(seq).tensor]; }

    WorkerConfig config_;
    CongestionWindow congestion_;
    std::vector<Slot> slots_;             // W
    std::vector<std::uint32_t> indices_;  // per slot: aggregator index of its next fragment
    OperationQueue operations_;           // operations whose event was not polled
    std::uint64_t tensors_started_ = 0;   // number of tensors of which all fragments were sent once
    std::uint32_t expected_ = 0;
    std::uint32_t next_seq_ = 0;
    std::uint32_t unacked_ = 0;  // fragments sent and without ACK
    ReadyNotice ready_;
    HomeSum home_sum_;
    bool announced_ = false;            // of the operation that it starts, this worker has sent a fragment that it owns
    bool in_train_ = false;             // the next fragment leaves with the one before
    std::uint32_t recovery_until_ = 0;  // no halving until every earlier fragment is acknowledged
    std::uint32_t losses_until_ = 0;    // packets lost since the fragment before this one was sent are counted
    std::uint32_t losses_noted_ = 0;    // as one window's
    std::uint32_t measured_from_ = 0;   // earlier fragments were in flight at an expiry: not measured
    std::uint32_t late_from_ = 0;       // earlier fragments wait for other workers: no learning from them
    LossDetector losses_;
    Ring<QueuedFragment> resends_;
    Ring<QueuedFragment> probes_;
    FloatsLeft floats_left_;
    bool echo_ = false;  // the downlink was marked: set ECN_DOWN on the next gradient
    bool failed_ = false;
    bool mismatched_ = false;
    std::uint64_t mismatched_tensor_ = 0;  // valid if mismatched_
    std::optional<std::uint64_t> hint_;    // the oldest tensor at which workers may differ; not saved
    Time failed_at_{};
    Time timer_ = never;
    std::uint32_t backoff_ = 0;  // expiries since the last progress
    RoundTrip round_trip_;
    bool answered_ = false;
    Time answered_at_{};  // last packet of the server
    std::uint32_t missing_units_ = 0;
    std::uint32_t missing_members_ = 0;
    WorkerCounters counters_;
};

template <class Archive>
void Worker::persist(Archive& archive) {
    congestion_.persist(archive);
    for (Slot& s : slots_) {
        archive.value(s.state);
        if (s.state == State::free) continue;
        archive.value(s.tensor), archive.value(s.mode), archive.value(s.resend_queued), archive.value(s.resent);
        archive.value(s.probe_queued);
        archive.unread(s.resent_as);
        archive.value(s.probed), archive.value(s.parts), archive.value(s.delivery.owner);
        archive.value(s.delivery.one_sender), archive.value(s.sends_no_lanes), archive.value(s.only_floats);
        archive.value(s.overtaken_by), archive.value(s.newer_from), archive.time(s.sent_at);
        archive.unread(s.sendings);
    }
    for (std::uint32_t& index : indices_) archive.value(index);
    operations_.persist(archive);
    archive.value(tensors_started_), archive.value(expected_), archive.value(next_seq_), archive.value(unacked_);
    archive.value(in_train_);
    archive.value(recovery_until_), archive.value(losses_until_), archive.value(losses_noted_),
        archive.value(measured_from_), archive.value(late_from_);
    archive.value(announced_), ready_.persist(archive), losses_.persist(archive), resends_.persist(archive),
        probes_.persist(archive);
    archive.value(floats_left_.any), archive.value(floats_left_.resend), archive.value(floats_left_.seq);
    archive.value(floats_left_.next.rank), archive.value(floats_left_.next.packet);
    archive.value(echo_), archive.value(failed_), archive.value(mismatched_), archive.time(failed_at_),
        archive.value(mismatched_tensor_);
    archive.time(timer_), archive.value(backoff_);
    round_trip_.persist(archive);
    archive.value(answered_), archive.time(answered_at_);
    archive.value(missing_units_), archive.value(missing_members_);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
