// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ring.h"
#include "base/time.h"
#include "numeric/exact_sum.h"
#include "protocol/archive.h"
#include "protocol/breaks.h"
#include "protocol/channel.h"
#include "protocol/fragment_format.h"
#include "protocol/membership.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

struct ServerConfig {
    ChannelConfig channel;
    double scale = 1e8;  // integers are x * scale and results float32(sum / scale); PLAIN: unscaled
    // Interval in which the server sends a worker the same answer about a fragment at most once. It must be shorter
    // than a worker's timeout by more than a round trip: otherwise the PROBE for a lost answer would get no answer.
    Duration repeat_interval = std::chrono::microseconds(500);
};

struct ServerCounters {
    std::uint64_t refused = 0;          // undecodable, or of a shape that this channel or fragment never has
    std::uint64_t forged = 0;           // another job, token or channel
    std::uint64_t stale = 0;            // packets of fragments whose result every worker has
    std::uint64_t ahead = 0;            // packets of fragments that no worker can have reached
    std::uint64_t gradients = 0;        // packets of fragments in progress
    std::uint64_t duplicates = 0;       // sets that were included already
    std::uint64_t replaced = 0;         // sets that contained the included set and replaced it
    std::uint64_t overlapping = 0;      // sets that overlapped the included set and were requested again
    std::uint64_t overflowed = 0;       // packets with the OVERFLOW flag
    std::uint64_t float_fragments = 0;  // fragments summed as floats
    std::uint64_t mismatched = 0;       // dropped packets of mismatched fragments
    std::uint64_t audit_failures = 0;   // sets dropped for a wrong audit lane
    std::uint64_t completed = 0;        // fragments
    std::uint64_t added_here = 0;       // additions by this server, of completed fragments
    std::uint64_t collided = 0;         // fragments with a collision
    std::uint64_t remapped = 0;         // slots that got another aggregator index
    std::uint64_t marked = 0;           // fragments acknowledged with ECN
    std::uint64_t acks = 0, reacks = 0, nacks = 0, waits = 0, flushes = 0;  // queued for sending
    std::uint64_t unsent = 0;  // answers dropped because the queue was full; a PROBE asks again
};

// Destination of a packet from poll_transmit(): `worker`, or all workers of `units` if it is ATP_WORKER_ALL.
struct ServerTransmit {
    std::size_t size = 0;
    std::uint16_t worker = ATP_WORKER_ALL;
    std::uint32_t units = 0;
};

// Parameter server of one channel. It adds what the switches have not added, sends each result to all workers, and
// keeps the result until no worker can ask for it (docs/protocol.md#server).
//
// Ownership: owns a ring of 2W records, allocated at construction. Borrows `membership`, which must outlive the
//   server.
// Calling order: handle_packet() for one or more datagrams, then poll_transmit() until it returns nothing. There is
//   no timer: a worker that misses a result sends a PROBE.
// Threads: none. One thread drives one channel.
// Failure: the constructor throws std::bad_alloc. A packet that does not decode, or has another job, token, channel
//   or shape, is dropped and counted. A result is sent only if it includes every worker exactly once.
class Server {
  public:
    Server(const ServerConfig& config, const Membership& membership);

    // One datagram, borrowed for the call. `congested`: its IP header carried CE.
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now);
    // Writes the next packet, or returns nothing if there is none. `buffer` holds at least packet_bytes().
    std::optional<ServerTransmit> poll_transmit(std::span<std::byte> buffer);

    [[nodiscard]] bool has_transmit() const { return !outbox_.empty(); }
    [[nodiscard]] std::size_t packet_bytes() const;
    [[nodiscard]] const ServerConfig& config() const { return config_; }
    [[nodiscard]] const Membership& membership() const { return membership_; }
    [[nodiscard]] const ServerCounters& counters() const { return counters_; }
    // The first fragment that is not complete.
    [[nodiscard]] std::uint32_t base() const { return base_; }

    template <class Archive>
    void persist(Archive& archive);

  private:
    enum class State : std::uint8_t { idle, gathering, complete };

    // How contributions must arrive, in ascending order. The mode of a record never decreases.
    enum class Mode : std::uint8_t {
        aggregated,  // integers, added by switches and server
        singly,      // integers with BYPASS: a sum overflowed on the path
        floats,      // values that do not fit integers: the exact sum of the floats of all workers
    };

    struct Record {
        std::uint32_t seq = 0;
        State state = State::idle;
        Mode mode = Mode::aggregated;
        bool ecn = false;
        bool collision = false;
        // Of the included packets:
        bool plain = false;
        bool shorts = false;
        std::uint8_t scale = scale_of_job;
        std::uint16_t lanes = 0;  // lanes of the fragment in 4-byte elements
        std::uint32_t purpose = 0;
        bool converted = false;     // one packet had the sum of all workers: its result is in results_ already
        bool short_result = false;  // set at completion: the result has int16 lanes
        bool mismatched = false;    // packets of different shape or purpose arrived: never completes
        bool level1_flushed = false;
        std::uint32_t flushed_units = 0;  // units whose level 0 got a FLUSH
        std::uint32_t index = 0;          // aggregator index of seq
        std::uint32_t next_index = 0;     // aggregator index of seq + W
        std::uint32_t count = 0;          // workers included
        std::uint32_t merges = 0;         // additions by this server
        Time told_until{};                // answers in told_ are not repeated before this time
    };

    struct Answer {
        std::uint8_t type = 0;
        std::uint8_t dtype = ATP_DTYPE_NONE;  // of a NACK; an ACK has that of its record
        std::uint8_t scale = scale_of_job;    // of a FLUSH; an ACK has that of its record
        std::uint16_t flags = 0;
        std::uint16_t worker = ATP_WORKER_ALL;
        std::uint8_t hop = 0;
        std::uint32_t seq = 0;
        std::uint32_t members = 0;  // bitmap0
        std::uint32_t units = 0;    // bitmap1

        template <class Archive>
        void persist(Archive& archive) {
            archive.value(type), archive.value(dtype), archive.value(flags), archive.value(worker);
            archive.value(scale), archive.value(hop), archive.value(seq), archive.value(members), archive.value(units);
        }
    };

    enum class Relation : std::uint8_t { disjoint, contains, inside, overlaps };

    // Workers that a packet covers: members of one unit, or whole units.
    struct Set {
        std::uint32_t units = 0;
        std::uint32_t members = 0;  // of the one unit; not used if `whole`
        bool whole = false;
    };

    void handle_gradient(const wire::Packet& packet, Time now);
    void handle_probe(const atp_header& header, Time now);
    Record* record_in_progress(std::uint32_t seq);
    [[nodiscard]] Record* retained(std::uint32_t seq);
    void open(Record& record, std::uint32_t seq);

    [[nodiscard]] std::optional<Set> set_of(const wire::Packet& packet) const;
    [[nodiscard]] std::uint32_t members_of(const Set& set, unsigned unit) const;
    [[nodiscard]] std::uint32_t count_of(const Set& set) const;
    [[nodiscard]] bool audit_holds(const wire::Packet& packet, const Set& set) const;
    [[nodiscard]] Relation relation(const Record& record, const Set& set) const;
    void merge(Record& record, const wire::Packet& packet, const Set& set, Time now);

    void merge_integers(Record& record, const wire::Packet& packet, const Set& set, Time now);
    void assign(Record& record, const wire::Packet& packet, const Set& set);
    void merge_floats(Record& record, const wire::Packet& packet, const Set& set, Time now);
    [[nodiscard]] bool differs(const Record& record, const wire::Packet& packet) const;
    void tell_mismatch(Record& record, const Set& set, Time now);
    void mark_in(Record& record, const Set& set, bool replace);
    void raise_mode(Record& record, Mode mode, Time now);
    void fetch_from_switches(Record& record, const atp_header& header, const Set& set);
    void finish(Record& record);
    void freeze(Record& record);
    std::uint32_t choose_next_index(const Record& record);
    [[nodiscard]] bool index_in_use(std::uint32_t index, std::uint32_t except_slot) const;

    void ask_missing(Record& record, Time now);
    void ask(Record& record, unsigned unit, std::uint32_t members, std::uint16_t worker);
    void answer_again(Record& record, std::uint16_t rank, Time now);
    std::uint32_t not_yet_told(Record& record, unsigned unit, std::uint32_t members, Time now);
    void send(const Answer& answer, std::uint64_t& counter);

    [[nodiscard]] std::size_t audit_lanes() const { return config_.channel.audit ? 1U : 0U; }
    // Lanes of a packet that carry elements.
    [[nodiscard]] std::size_t payload_of(std::size_t lanes) const { return lanes - audit_lanes(); }
    // Lanes of the packet if its elements took 4 bytes each.
    [[nodiscard]] std::size_t lanes_of(const wire::Packet& packet) const;
    [[nodiscard]] std::size_t result_lanes(const Record& record) const {
        const std::size_t elements = payload_of(record.lanes);
        return (record.short_result ? elements / 2 : elements) + audit_lanes();
    }
    [[nodiscard]] static std::uint8_t result_dtype(const Record& record) {
        if (record.short_result) return ATP_DTYPE_INT16;
        return record.plain ? ATP_DTYPE_INT32 : ATP_DTYPE_FLOAT32;
    }
    [[nodiscard]] double inverse_scale(std::uint8_t scale) const { return 1.0 / scale_from(scale, config_.scale); }
    [[nodiscard]] std::size_t position(const Record& record) const {
        return static_cast<std::size_t>(&record - records_.data());
    }
    [[nodiscard]] std::uint32_t* row(std::vector<std::uint32_t>& masks, const Record& record) const {
        return masks.data() + position(record) * membership_.units();
    }
    [[nodiscard]] const std::uint32_t* row(const std::vector<std::uint32_t>& masks, const Record& record) const {
        return masks.data() + position(record) * membership_.units();
    }
    [[nodiscard]] std::span<std::int64_t> sums_of(const Record& record) {
        return {sums_.get() + position(record) * config_.channel.lanes, config_.channel.lanes};
    }
    [[nodiscard]] std::span<numeric::ExactLane> exact_of(const Record& record) {
        return {exact_.get() + position(record) * config_.channel.lanes, config_.channel.lanes};
    }
    [[nodiscard]] std::span<std::byte> result_of(const Record& record) {
        return {results_.get() + position(record) * config_.channel.lanes * ATP_LANE_BYTES,
                std::size_t{config_.channel.lanes} * ATP_LANE_BYTES};
    }

    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    // Zeroed pages. The system allocates them on first access, so an idle server uses little memory.
    template <class Element>
    using Pages = std::unique_ptr<Element[], Free>;

    ServerConfig config_;
    const Membership& membership_;
    std::uint32_t base_;                   // first fragment that is not complete
    std::vector<Record> records_;          // 2W; q is at q mod 2W until q + 2W replaces it (H8, docs/protocol.md#h8)
    std::vector<std::uint32_t> in_;        // per record and unit: members included in the sum
    std::vector<std::uint32_t> sent_;      // per record and unit: members known to have sent
    std::vector<std::uint32_t> told_;      // per record and unit: members answered in this repeat interval
    Pages<std::int64_t> sums_;             // per record and lane
    Pages<numeric::ExactLane> exact_;      // per record and lane; used in mode floats only
    Pages<std::byte> results_;             // in wire format
    std::vector<std::uint32_t> attempts_;  // per slot: hash attempt of its aggregator index
    std::vector<std::uint8_t> heat_;       // per slot: collision score of the last rounds (H12, docs/protocol.md#h12)
    Ring<Answer> outbox_;                  // an answer that does not fit is counted as `unsent`
    ServerCounters counters_;
};

template <class Archive>
void Server::persist(Archive& archive) {
    archive.value(base_);
    for (Record& r : records_) {
        archive.value(r.state);
        if (r.state == State::idle) continue;
        archive.value(r.seq), archive.value(r.mode), archive.value(r.ecn), archive.value(r.index);
        archive.value(r.plain), archive.value(r.lanes), archive.value(r.purpose), archive.value(r.mismatched);
        archive.value(r.shorts), archive.value(r.scale);
        const std::size_t lanes = std::min(r.lanes, config_.channel.lanes);  // an archive may bring any number
        if (r.state == State::complete) {
            archive.value(r.short_result), archive.value(r.next_index);
            archive.bytes(result_of(r).first(std::min(result_lanes(r), lanes) * ATP_LANE_BYTES));
        } else {
            archive.value(r.collision), archive.value(r.level1_flushed), archive.value(r.flushed_units);
            archive.value(r.count), archive.value(r.merges);
            if (r.mode == Mode::floats) {
                archive.bytes(std::as_writable_bytes(exact_of(r)));
            } else if (r.count != 0) {
                archive.bytes(std::as_writable_bytes(sums_of(r).first(lanes)));
            }
            for (unsigned u = 0; u < membership_.units(); ++u) {
                archive.value(row(in_, r)[u]), archive.value(row(sent_, r)[u]);
            }
        }
        archive.time(r.told_until);
        for (unsigned u = 0; u < membership_.units(); ++u) archive.value(row(told_, r)[u]);
    }
    for (std::uint32_t& attempt : attempts_) archive.value(attempt);
    for (std::uint8_t& heat : heat_) archive.value(heat);
    outbox_.persist(archive);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
