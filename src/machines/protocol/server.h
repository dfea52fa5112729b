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
    double scale = 1e8;  // integers are x * scale; results are float32(sum / scale), unless the tensor is plain
    // The same worker is told the same thing about the same fragment at most once in this time: shorter than a worker's
    // timeout by more than a round trip, or a probe for an answer that was lost would itself go unanswered.
    Duration repeat_interval = std::chrono::microseconds(500);
};

struct ServerCounters {
    std::uint64_t refused = 0;          // undecodable, or of a shape that this channel or fragment never has
    std::uint64_t forged = 0;           // another job, token or channel
    std::uint64_t stale = 0;            // of fragments that every worker holds already
    std::uint64_t ahead = 0;            // further ahead than any worker can be
    std::uint64_t gradients = 0;        // packets of fragments in progress
    std::uint64_t duplicates = 0;       // sets that were in already
    std::uint64_t replaced = 0;         // sets that contained what was there
    std::uint64_t overlapping = 0;      // sets that could not be merged and were asked for again
    std::uint64_t overflowed = 0;       // packets under the overflow flag
    std::uint64_t float_fragments = 0;  // fragments summed as floats
    std::uint64_t mismatched = 0;       // packets of fragments that workers mean differently: dropped
    std::uint64_t audit_failures = 0;   // sets whose audit lane was wrong: dropped
    std::uint64_t completed = 0;        // fragments
    std::uint64_t added_here = 0;       // additions of completed fragments made by this server, not in the network
    std::uint64_t collided = 0;         // fragments that met a collision
    std::uint64_t remapped = 0;         // slots that were given another aggregator
    std::uint64_t marked = 0;           // fragments acknowledged with ECN
    std::uint64_t acks = 0, reacks = 0, nacks = 0, waits = 0, flushes = 0;  // sent
    std::uint64_t unsent = 0;  // answers dropped because the queue was full: a probe asks again
};

// Where a packet goes that poll_transmit() wrote: down to `worker`, or to the workers of all `units`.
struct ServerTransmit {
    std::size_t size = 0;
    std::uint16_t worker = ATP_WORKER_ALL;
    std::uint32_t units = 0;
};

// The parameter server of one channel: adds what the network did not, and keeps every result until nobody can ask for
// it any more.
//
// Calling order: handle_packet() for each datagram, in batches if you like; then poll_transmit() until it returns
// nothing. It has no timers: whoever misses something asks (PROBE).
// Owns: a ring of 2W records and everything in them, claimed at construction; borrows the membership, which outlives
// it. Threads: none; one thread drives one channel. Failure: packets that do not belong here are dropped and counted. A
// result is the sum of every worker exactly once, or it is not sent.
class Server {
  public:
    Server(const ServerConfig& config, const Membership& membership);

    void handle_packet(std::span<std::byte> bytes, bool congested, Time now);
    // Writes one packet; nothing when there is nothing to send. `buffer` holds at least packet_bytes().
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

    // How contributions must come, in rising order; a record never goes back.
    enum class Mode : std::uint8_t {
        aggregated,  // integers, added wherever there is room
        singly,      // integers, unaggregated: a sum left 32 bits on the way
        floats,      // some worker's values do not fit integers: exact sums of everybody's floats
    };

    struct Record {
        std::uint32_t seq = 0;
        State state = State::idle;
        Mode mode = Mode::aggregated;
        bool ecn = false;
        bool collision = false;
        // As of everything that is in:
        bool plain = false;
        bool shorts = false;
        std::uint8_t scale = scale_of_job;
        std::uint16_t lanes = 0;  // as if none were shorts
        std::uint32_t purpose = 0;
        bool converted = false;     // it came whole: the result stands where it belongs already
        bool short_result = false;  // once complete
        bool mismatched = false;    // somebody sent something else: it will never be complete
        bool level1_flushed = false;
        std::uint32_t flushed_units = 0;
        std::uint32_t index = 0;       // the aggregator of this round
        std::uint32_t next_index = 0;  // that of seq + W
        std::uint32_t count = 0;       // workers in
        std::uint32_t merges = 0;      // additions made here
        Time told_until{};             // repetitions before this are suppressed
    };

    struct Answer {
        std::uint8_t type = 0;
        std::uint8_t dtype = ATP_DTYPE_NONE;  // of a NACK; an ACK's is its record's
        std::uint8_t scale = scale_of_job;    // of a FLUSH, likewise
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

    // The set of workers a packet speaks for: members of one unit, or whole units.
    struct Set {
        std::uint32_t units = 0;
        std::uint32_t members = 0;  // of the one unit, when not whole
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
    // Lanes that a packet would have if none were shorts.
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
    // Zeroed pages that the system hands out when they are touched: a server costs nothing until it works.
    template <class Element>
    using Pages = std::unique_ptr<Element[], Free>;

    ServerConfig config_;
    const Membership& membership_;
    std::uint32_t base_;
    std::vector<Record> records_;      // 2W: seq q lies at q mod 2W until q + 2W comes, which proves that nobody asks
    std::vector<std::uint32_t> in_;    // a row of units for each record: members whose numbers are in
    std::vector<std::uint32_t> sent_;  // members known to have sent
    std::vector<std::uint32_t> told_;  // members told something since told_until was set
    Pages<std::int64_t> sums_;
    Pages<numeric::ExactLane> exact_;      // touched in float mode only
    Pages<std::byte> results_;             // as they go on the wire
    std::vector<std::uint32_t> attempts_;  // of each slot
    std::vector<std::uint8_t> heat_;       // of each slot: how often it collided lately
    Ring<Answer> outbox_;
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
        const std::size_t lanes = std::min(r.lanes, config_.channel.lanes);  // what an archive brings is not judged
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
