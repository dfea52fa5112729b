// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/counters.h"
#include "base/time.h"
#include "protocol/answer_queue.h"
#include "protocol/archive.h"
#include "protocol/breaks.h"
#include "protocol/channel.h"
#include "protocol/fragment_format.h"
#include "protocol/fragment_record.h"
#include "protocol/loss_detector.h"
#include "protocol/membership.h"
#include "protocol/ready_workers.h"
#include "protocol/slot_indices.h"
#include "protocol/variant.h"
#include "protocol/worker_set.h"
#include "wire/packet.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

struct ServerConfig {
    ChannelConfig channel;
    double scale = 1e8;  // integers are x * scale and results float32(sum / scale); PLAIN: unscaled
    // Interval in which the server sends a worker the same answer about a fragment at most once. It must be shorter
    // than a worker's timeout by more than a round trip: otherwise the PROBE for a lost answer would get no answer.
    Duration repeat_interval = std::chrono::microseconds(500);
    MemoryBudget* memory = nullptr;  // for sums, borrowed; nullptr: only the process limits them
};

// tools/write_events writes the counters of a server from src/events.toml.
// Of a parameter server, for each channel.
struct ServerCounters {
    std::uint64_t completed = 0;        // fragments completed
    std::uint64_t added_here = 0;       // additions that the server made instead of the network, of completed fragments
    std::uint64_t gradients = 0;        // gradients of fragments in progress
    std::uint64_t duplicates = 0;       // gradients that the sum already includes
    std::uint64_t replaced = 0;         // gradients that replace an earlier sum of some of their workers
    std::uint64_t overlapping = 0;      // gradients that share only some workers with the sum, and are requested again
    std::uint64_t overflowed = 0;       // gradients with the OVERFLOW flag
    std::uint64_t float_fragments = 0;  // fragments summed as floats
    std::uint64_t collided = 0;         // fragments with a collision
    std::uint64_t remapped = 0;         // base slots moved to another aggregator
    std::uint64_t marked = 0;           // fragments acknowledged with the congestion flag
    std::uint64_t acks = 0;             // results sent
    std::uint64_t reacks = 0;           // results sent again
    std::uint64_t nacks = 0;            // requests for a gradient
    std::uint64_t waits = 0;            // requests to wait
    std::uint64_t flushes = 0;          // requests for a partial sum
    std::uint64_t stale = 0;            // packets of fragments whose result every worker has
    std::uint64_t ahead = 0;            // packets of fragments that no worker can have reached
    std::uint64_t forged = 0;           // packets dropped: of another job, token or channel
    std::uint64_t refused = 0;  // packets dropped: undecodable, or of a shape that this channel or fragment never has
    std::uint64_t mismatched = 0;      // packets dropped: of another operation than the fragment's
    std::uint64_t audit_failures = 0;  // sums dropped for a wrong audit word
    std::uint64_t readies = 0;         // READYs by which workers report that they take the parts of an all-gather
    std::uint64_t unsent = 0;          // answers dropped because the queue was full; workers ask again
    std::uint64_t packets = 0;         // packets to the server
    std::uint64_t bytes = 0;           // bytes of the UDP payload of these packets
    std::uint64_t no_memory = 0;       // gradients dropped because their sums found no memory; workers send again
};

inline constexpr std::array server_fields{
    counter<&ServerCounters::completed>("completed"),
    counter<&ServerCounters::added_here>("added_here"),
    counter<&ServerCounters::gradients>("gradients"),
    counter<&ServerCounters::duplicates>("duplicates"),
    counter<&ServerCounters::replaced>("replaced"),
    counter<&ServerCounters::overlapping>("overlapping"),
    counter<&ServerCounters::overflowed>("overflowed"),
    counter<&ServerCounters::float_fragments>("float_fragments"),
    counter<&ServerCounters::collided>("collided"),
    counter<&ServerCounters::remapped>("remapped"),
    counter<&ServerCounters::marked>("marked"),
    counter<&ServerCounters::acks>("acks"),
    counter<&ServerCounters::reacks>("reacks"),
    counter<&ServerCounters::nacks>("nacks"),
    counter<&ServerCounters::waits>("waits"),
    counter<&ServerCounters::flushes>("flushes"),
    counter<&ServerCounters::stale>("stale"),
    counter<&ServerCounters::ahead>("ahead"),
    counter<&ServerCounters::forged>("forged"),
    counter<&ServerCounters::refused>("refused"),
    counter<&ServerCounters::mismatched>("mismatched"),
    counter<&ServerCounters::audit_failures>("audit_failures"),
    counter<&ServerCounters::readies>("readies"),
    counter<&ServerCounters::unsent>("unsent"),
    counter<&ServerCounters::packets>("received_packets"),
    counter<&ServerCounters::bytes>("received_bytes"),
    counter<&ServerCounters::no_memory>("no_memory"),
};
// End of the written part.

// Destination of a packet from poll_transmit(): `worker`, or all workers of `units` if it is ATP_WORKER_ALL.
struct ServerTransmit {
    std::size_t size = 0;
    std::uint16_t worker = ATP_WORKER_ALL;
    std::uint32_t units = 0;
};

// Parameter server of one channel. It adds the packets that the switches have not added, sends each result to all
// workers, and keeps the result until no worker can ask for it (docs/spec/server.md).
//
// Ownership: owns a ring of 2W records, allocated at construction. Borrows `membership` and the memory for sums, which
//   must outlive the server.
// Calling order: handle_packet() for one or more datagrams, then poll_transmit() until it returns nothing. There is
//   no timer: a worker that misses a result sends a PROBE.
// Threads: none. One thread drives one channel.
// Failure: the constructor throws std::bad_alloc. A packet that does not decode, or has another job, token, channel
//   or shape, is dropped and counted, and so is one whose sums find no room. A result is sent only if it includes every
//   worker exactly once.
class Server {
  public:
    Server(const ServerConfig& config, const Membership& membership);

    // One datagram, borrowed for the call. `congested`: its IP header carried CE.
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now);
    // Writes the next packet, or returns nothing if there is none. `buffer` holds at least packet_bytes().
    std::optional<ServerTransmit> poll_transmit(std::span<std::byte> buffer);

    [[nodiscard]] bool has_transmit() const { return !answers_.empty(); }
    [[nodiscard]] std::size_t packet_bytes() const;
    [[nodiscard]] const ServerConfig& config() const { return config_; }
    [[nodiscard]] const Membership& membership() const { return membership_; }
    [[nodiscard]] const ServerCounters& counters() const { return counters_; }
    // The first fragment that is not complete.
    [[nodiscard]] std::uint32_t base() const { return base_; }
    // A worker takes the result of a fragment that is not complete: further ACKs follow soon.
    [[nodiscard]] bool expects_more() const { return ready_.any_takes(base_); }
    // The fragment is complete, and its result is kept.
    [[nodiscard]] bool has_result(std::uint32_t seq) const {
        return records_.at(seq).seq == seq && records_.at(seq).state == State::complete;
    }

    template <class Archive>
    void persist(Archive& archive);

  private:
    using Answer = AnswerQueue::Answer;
    using Mode = FragmentRecord::Mode;
    using Record = FragmentRecord;
    using State = FragmentRecord::State;

    struct FloatsOfMember {
        bool is_new = false;   // not added before
        bool is_last = false;  // all packets of the member are in
    };

    void handle_gradient(wire::Packet& packet, Time now);
    void handle_probe(const atp_header& header, Time now);
    // server_delivery.cc: fragments whose result goes to one worker, or comes from one.
    void handle_ready(const atp_header& header, Time now);
    [[nodiscard]] bool has_delivery(const atp_header& header) const;
    [[nodiscard]] bool delivers(const wire::Packet& packet, const WorkerSet& set) const;
    [[nodiscard]] bool is_complete(const Record& record);
    [[nodiscard]] bool adopt_delivery(Record& record, const atp_header& header) const;
    void answer_probe_of_one_sender(Record& record, const atp_header& header, Time now);
    // server_home.cc: sums whose owner adds its own numbers at home.
    [[nodiscard]] const Place* home_of(const Delivery& delivery) const;
    [[nodiscard]] bool owner_is_home(const Record& record) const;
    [[nodiscard]] bool lacks_owner_only(const Record& record);
    [[nodiscard]] std::uint32_t members_to_send(const Record& record, unsigned unit) const;
    void require_owner(Record& record, const atp_header& header, Time now);
    void resume_with_owner(Record& record, const atp_header& header, Time now);
    void send_result(const Record& record, AnswerQueue::Cause cause);
    Record* record_in_progress(std::uint32_t seq);
    [[nodiscard]] Record* retained(std::uint32_t seq);

    [[nodiscard]] std::optional<WorkerSet> set_of(const wire::Packet& packet) const;
    [[nodiscard]] bool audit_holds(const wire::Packet& packet, const WorkerSet& set) const;
    void merge(Record& record, const wire::Packet& packet, const WorkerSet& set, Time now);

    void merge_integers(Record& record, const wire::Packet& packet, const WorkerSet& set, Time now);
    // False: there is no room for the sums.
    [[nodiscard]] bool assign(Record& record, const wire::Packet& packet, const WorkerSet& set);
    [[nodiscard]] bool begin_floats(Record& record, const wire::Packet& packet, Time now);
    // The first fragments in progress always find room.
    [[nodiscard]] bool is_first(const Record& record) const;
    [[nodiscard]] FloatsOfMember take_floats(Record& record, const atp_header& header, const WorkerSet& set);
    void merge_floats(Record& record, const wire::Packet& packet, const WorkerSet& set, Time now);
    [[nodiscard]] bool differs(const Record& record, const wire::Packet& packet) const;
    void notify_mismatch(Record& record, const atp_header& header, const WorkerSet& set, Time now);
    void mark_in(Record& record, const WorkerSet& set, bool replace);
    void raise_mode(Record& record, Mode mode, Time now);
    void fetch_from_switches(Record& record, const atp_header& header, const WorkerSet& set);
    void finish(Record& record, AnswerQueue::Cause last);
    // server_recovery.cc: gradients that were lost.
    void find_lost(const Record& completed);
    void fetch_lost(Record& record);
    // False: the packet is of no use.
    [[nodiscard]] bool settle_scale(Record& record, wire::Packet& packet, Time now);
    void forget_if_owned(Record& record, const atp_header& header);
    void ask_for_scale(Record& record, const atp_header& header, Time now);
    void ask_for_lost(Record& record, const atp_header& header, const WorkerSet& set, Time now);
    void ask_unit(Record& record, const atp_header& header, unsigned unit, Time now);
    void flush_unit(Record& record, unsigned unit, std::uint32_t missing);
    void freeze(Record& record);

    // `header`: of the packet that causes the answer.
    void ask_missing(Record& record, const atp_header& header, Time now, const WorkerSet& except = {});
    void ask(Record& record, const atp_header& header, unsigned unit, std::uint32_t members, std::uint16_t worker);
    void answer_again(Record& record, const atp_header& header, Time now);
    std::uint32_t not_yet_notified(Record& record, unsigned unit, std::uint32_t members, Time now) {
        return records_.not_yet_notified(record, unit, members, now, config_.repeat_interval);
    }
    void send(const Answer& answer, std::uint64_t& counter);

    [[nodiscard]] double inverse_scale(std::uint8_t scale) const { return 1.0 / scale_from(scale, config_.scale); }

    ServerConfig config_;
    const Membership& membership_;
    std::uint32_t base_;  // first fragment that is not complete
    FragmentRecords records_;
    SlotIndices indices_;
    LossDetector completions_;
    ReadyWorkers ready_;
    AnswerQueue answers_;             // an answer that does not fit is counted as `unsent`
    std::uint8_t answer_packet_ = 0;  // next packet of the first answer
    ServerCounters counters_;
};

template <class Archive>
void Server::persist(Archive& archive) {
    archive.value(base_);
    records_.persist(archive);
    indices_.persist(archive);
    completions_.persist(archive);
    ready_.persist(archive);
    answers_.persist(archive);
    archive.value(answer_packet_);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
