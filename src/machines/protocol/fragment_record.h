// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "numeric/exact_sum.h"
#include "protocol/channel.h"
#include "protocol/delivery.h"
#include "protocol/fragment_format.h"
#include "wire/format.h"

namespace atp::protocol {

// State of one fragment at its server.
struct FragmentRecord {
    enum class State : std::uint8_t { idle, gathering, complete };

    // How contributions must arrive, in ascending order. The mode of a record never decreases.
    enum class Mode : std::uint8_t {
        aggregated,    // integers, added by switches and server
        unaggregated,  // integers with BYPASS: a sum overflowed on the path
        floats,        // values that do not fit integers: the exact sum of the floats of all workers
    };

    std::uint32_t seq = 0;
    State state = State::idle;
    Mode mode = Mode::aggregated;
    bool ecn = false;       // congestion on the way up
    bool ecn_down = false;  // congestion of a worker's downlink
    bool collision = false;
    bool filled = false;  // it has numbers of a packet. Of these packets:
    bool plain = false;
    bool proof = false;  // with proof words
    bool known = false;  // `delivery` is that of the first gradient or PROBE
    Delivery delivery{};
    bool asks_owner = false;              // of a sum: it needs the owner's own numbers
    bool without_owner = false;           // complete without them: the result has the integers of all others
    std::uint8_t form = ATP_DTYPE_INT32;  // type in which all workers send the fragment's integers
    std::uint8_t scale = scale_of_job;
    // Elements of the fragment, its padding included. Until `sized`, at least so many.
    std::uint32_t elements = 0;
    bool sized = false;
    std::uint32_t purpose = 0;
    bool converted = false;  // one packet had the sum of all workers, and the result was written from it
    // Type of the result's lanes: set at completion, or with `converted`.
    std::uint8_t result_type = ATP_DTYPE_FLOAT32;
    std::array<std::uint32_t, ATP_PROOF_LANES> proof_words{};  // sums modulo 2^32
    bool mismatched = false;  // packets of different shape or purpose arrived: never completes
    bool level1_flushed = false;
    std::uint32_t flushed_units = 0;  // units whose level 0 got a FLUSH after a COLLISION
    std::uint32_t passed_units = 0;   // units whose level 0 got a FLUSH because a worker chose to pass it
    std::uint32_t index = 0;          // aggregator index of seq
    std::uint32_t next_index = 0;     // aggregator index of seq + W
    std::uint32_t count = 0;          // workers included
    std::uint32_t merges = 0;         // additions by this server
    std::uint32_t audit_lane = 0;     // of the result: the words of all whose numbers it has; 0 without audit
    Time notified_until{};            // answers in notified() are not repeated before this time

    // Field `lanes` of the ACK.
    [[nodiscard]] std::uint8_t lanes_of_ack() const { return atp_lanes_of(form, result_type); }
    // Sums in floats have lost the digits that proof words prove.
    [[nodiscard]] bool proves_result() const { return proof && result_type != ATP_DTYPE_FLOAT32; }
};

// Packets of floats of one member that are added to a record. The last packet of the last rank is named as such; the
// member is complete when all before it are in too.
struct FloatsIn {
    static constexpr unsigned most_packets = ATP_PART_PACKET_MASK + 1;

    std::array<std::uint64_t, most_packets> ranks{};  // per packet: rank k as bit k, from 1. Bit 0: the last packet

    [[nodiscard]] bool empty() const { return ranks == decltype(ranks){}; }
    [[nodiscard]] bool complete() const;
};

// Records of a channel's fragments with their masks of workers and their lanes. There are 2W records. The record of seq
// lasts until fragment seq + 2W replaces it (H8, docs/spec/hazards.md#h8).
//
// Ownership: owns all memory, allocated at construction.
// Calling order: open() a record before its masks and lanes are used.
// Threads: none.
// Failure: the constructor throws std::bad_alloc.
class FragmentRecords {
  public:
    FragmentRecords(const ChannelConfig& channel, unsigned units);

    // The record number seq mod 2W, which may hold another fragment.
    [[nodiscard]] FragmentRecord& at(std::uint32_t seq) { return records_[seq % records_.size()]; }
    [[nodiscard]] const FragmentRecord& at(std::uint32_t seq) const { return records_[seq % records_.size()]; }
    // Replaces the content of that record by fragment `seq`, which includes no worker yet.
    FragmentRecord& open(std::uint32_t seq, std::uint32_t index);

    // Members of each unit: included in the sum, known to have sent, answered in this repeat interval.
    [[nodiscard]] std::span<std::uint32_t> included(const FragmentRecord& record) { return row(in_, record); }
    [[nodiscard]] std::span<std::uint32_t> sent(const FragmentRecord& record) { return row(sent_, record); }
    [[nodiscard]] std::span<std::uint32_t> notified(const FragmentRecord& record) { return row(notified_, record); }

    // In mode floats: the packets of a member that are added.
    [[nodiscard]] FloatsIn& floats_in(const FragmentRecord& record, unsigned unit, unsigned member) {
        return floats_in_[(position(record) * units_ + unit) * ATP_BITMAP_BITS + member];
    }
    // Empties the sums of up to `elements` elements in mode floats.
    void clear_floats(const FragmentRecord& record, std::size_t elements) {
        std::fill_n(&floats_in(record, 0, 0), units_ * ATP_BITMAP_BITS, FloatsIn{});
        std::ranges::fill(exact(record).first(elements), numeric::ExactLane{});
        std::ranges::fill(sums(record).first(elements), 0);
    }

    // Returns the `members` that had no answer in the current repeat interval, and marks them as answered.
    std::uint32_t not_yet_notified(FragmentRecord& record, unsigned unit, std::uint32_t members, Time now,
                                   Duration interval);

    [[nodiscard]] std::span<std::int64_t> sums(const FragmentRecord& record) {
        return {sums_.get() + position(record) * elements_, elements_};
    }
    // Used in mode floats only. The sums are then of the elements that have an integer on all workers.
    [[nodiscard]] std::span<numeric::ExactLane> exact(const FragmentRecord& record) {
        return {exact_.get() + position(record) * elements_, elements_};
    }
    // Words with elements, in wire format.
    [[nodiscard]] std::span<std::byte> result(const FragmentRecord& record) {
        const std::size_t bytes = elements_ * ATP_LANE_BYTES;
        return {results_.get() + position(record) * bytes, bytes};
    }

    // Lanes behind those that carry elements: the audit lane or the proof words.
    [[nodiscard]] std::size_t tail_lanes(bool proof) const { return proof ? ATP_PROOF_LANES : audit_lanes_; }
    // Words with elements in a full packet.
    [[nodiscard]] std::size_t payload() const { return payload_; }
    // Words with elements in the result of a complete record, and the packets that carry them.
    [[nodiscard]] static std::size_t result_words(const FragmentRecord& record) {
        return words_of(record.elements, record.result_type);
    }
    [[nodiscard]] unsigned result_packets(const FragmentRecord& record) const {
        const std::size_t words = result_words(record);
        return words <= payload_ ? 1U : static_cast<unsigned>((words + payload_ - 1) / payload_);
    }
    // Writes the words of one of these packets, and returns their bytes. `buffer` holds a full packet's words.
    std::size_t copy_result(const FragmentRecord& record, unsigned packet, std::span<std::byte> buffer);

    template <class Archive>
    void persist(Archive& archive) {
        for (FragmentRecord& record : records_) {
            archive.value(record.state);
            if (record.state != FragmentRecord::State::idle) persist(archive, record);
        }
    }

  private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    // Zeroed pages. The system allocates them on first access, so an idle server uses little memory.
    template <class Element>
    using Pages = std::unique_ptr<Element[], Free>;

    template <class Archive>
    void persist(Archive& archive, FragmentRecord& r) {
        archive.value(r.seq), archive.value(r.mode), archive.value(r.ecn), archive.value(r.ecn_down);
        archive.value(r.index);
        archive.value(r.plain), archive.value(r.elements), archive.value(r.sized), archive.value(r.purpose);
        archive.value(r.mismatched);
        archive.value(r.known), archive.value(r.delivery.owner), archive.value(r.delivery.one_sender);
        archive.value(r.proof), archive.value(r.proof_words), archive.value(r.form), archive.value(r.scale);
        const std::size_t elements = std::min<std::size_t>(r.elements, elements_);  // an archive may contain any number
        if (r.state == FragmentRecord::State::complete) {
            archive.value(r.result_type), archive.value(r.next_index), archive.value(r.without_owner);
            archive.value(r.audit_lane);
            const std::size_t words = std::min(words_of(elements, r.result_type), elements_);
            archive.bytes(result(r).first(words * ATP_LANE_BYTES));
        } else {
            if (Archive::reads) r.converted = false;  // only a complete record is
            archive.value(r.collision), archive.value(r.level1_flushed), archive.value(r.flushed_units);
            archive.value(r.passed_units);
            archive.value(r.count), archive.value(r.merges), archive.value(r.filled), archive.value(r.asks_owner);
            if (r.mode == FragmentRecord::Mode::floats) {
                // No packet has arrived of the elements behind these.
                if (Archive::reads) clear_floats(r, elements_);
                archive.bytes(std::as_writable_bytes(exact(r).first(elements)));
                archive.bytes(std::as_writable_bytes(sums(r).first(elements)));
                const std::span<FloatsIn> floats(&floats_in(r, 0, 0), units_ * ATP_BITMAP_BITS);
                archive.bytes(std::as_writable_bytes(floats));
            } else if (r.count != 0) {
                archive.bytes(std::as_writable_bytes(sums(r).first(elements)));
            }
            for (unsigned u = 0; u < units_; ++u) archive.value(included(r)[u]), archive.value(sent(r)[u]);
        }
        archive.unread(r.notified_until);
        for (std::uint32_t& members : notified(r)) archive.unread(members);
    }

    [[nodiscard]] std::size_t position(const FragmentRecord& record) const {
        return static_cast<std::size_t>(&record - records_.data());
    }
    [[nodiscard]] std::span<std::uint32_t> row(std::vector<std::uint32_t>& masks, const FragmentRecord& record) const {
        return {masks.data() + position(record) * units_, units_};
    }

    std::size_t payload_;   // words with elements in a full packet
    std::size_t elements_;  // of the longest fragment: int8, four in each word
    std::size_t audit_lanes_;
    std::size_t units_;
    std::vector<FragmentRecord> records_;  // 2W
    std::vector<std::uint32_t> in_;        // per record and unit
    std::vector<std::uint32_t> sent_;      // per record and unit
    std::vector<std::uint32_t> notified_;  // per record and unit
    Pages<std::int64_t> sums_;             // per record and element
    Pages<numeric::ExactLane> exact_;      // per record and element
    Pages<std::byte> results_;
    Pages<FloatsIn> floats_in_;  // per record, unit and member
};

}  // namespace atp::protocol
