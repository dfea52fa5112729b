// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/memory_budget.h"
#include "base/pages.h"
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
    bool unscaled = false;            // of its numbers, which a switch returned, no worker has told the scale
    bool lost = false;                // newer fragments are complete: every worker has sent it
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
    // HeldSums in floats have lost the digits that proof words prove.
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

// Fragments from the first incomplete one on, whose sums always find room: of `window` slots, a quarter is in flight.
[[nodiscard]] constexpr std::uint32_t fragments_with_room(std::uint32_t window) { return std::max(window / 64, 1U); }

// Records of a channel's fragments with their masks of workers and their lanes. There are 2W records. The record of seq
// lasts until fragment seq + 2W replaces it (H8, docs/spec/hazards.md#h8).
//
// A result needs little, and must not be lost while a worker can ask for it. HeldSums need up to fourteen times as much
// (floats), but only until their fragment is complete. So records and results are part of what reserved_bytes() counts,
// and sums come from the budget as they are needed. If it is exhausted, only the first fragments_with_room(W) in
// progress get room: each channel then goes on slowly, whatever the others hold.
//
// Ownership: owns all memory. Borrows the budget, which must outlive it.
// Calling order: open() a record before its masks and lanes are used; hold_sums() or hold_floats() before sums() or
//   exact(), and drop_sums() when the result is written.
// Threads: none.
// Failure: the constructor throws std::bad_alloc. hold_*() return false if there is no room.
class FragmentRecords {
  public:
    // `budget` nullptr: only the process limits what sums take.
    FragmentRecords(const ChannelConfig& channel, unsigned units, MemoryBudget* budget = nullptr);
    ~FragmentRecords();
    FragmentRecords(const FragmentRecords&) = delete;
    FragmentRecords& operator=(const FragmentRecords&) = delete;

    // Bytes of a channel that a budget must reserve.
    [[nodiscard]] static std::uint64_t reserved_bytes(std::uint32_t lanes, std::uint32_t window, unsigned units);

    // The record number seq mod 2W, which may hold another fragment.
    [[nodiscard]] FragmentRecord& at(std::uint32_t seq) {
        const std::size_t place = seq % places_;
        return used_[place] != 0 ? records_[place] : unused_;
    }
    [[nodiscard]] const FragmentRecord& at(std::uint32_t seq) const {
        const std::size_t place = seq % places_;
        return used_[place] != 0 ? records_[place] : unused_;
    }
    // Replaces the content of that record by fragment `seq`, which includes no worker yet.
    FragmentRecord& open(std::uint32_t seq, std::uint32_t index);

    // Room for integer sums of `elements` elements. `first`: the record is among the first in progress.
    [[nodiscard]] bool hold_sums(const FragmentRecord& record, std::size_t elements, bool first);
    // Room for the sums of mode floats, all of them zero. It replaces that for integers.
    [[nodiscard]] bool hold_floats(const FragmentRecord& record, std::size_t elements, bool first);
    void drop_sums(const FragmentRecord& record);

    // Members of each unit: included in the sum, known to have sent, answered in this repeat interval.
    [[nodiscard]] std::span<std::uint32_t> included(const FragmentRecord& record) { return row(in_, record); }
    [[nodiscard]] std::span<std::uint32_t> sent(const FragmentRecord& record) { return row(sent_, record); }
    [[nodiscard]] std::span<std::uint32_t> notified(const FragmentRecord& record) { return row(notified_, record); }

    // In mode floats: the packets of a member that are added.
    [[nodiscard]] FloatsIn& floats_in(const FragmentRecord& record, unsigned unit, unsigned member) {
        return sums_[position(record)]->floats_in()[unit * ATP_BITMAP_BITS + member];
    }

    // Returns the `members` that had no answer in the current repeat interval, and marks them as answered.
    std::uint32_t not_yet_notified(FragmentRecord& record, unsigned unit, std::uint32_t members, Time now,
                                   Duration interval);

    // Empty: the record holds no room for sums.
    [[nodiscard]] std::span<std::int64_t> sums(const FragmentRecord& record) {
        const Held& held = sums_[position(record)];
        return held == nullptr ? std::span<std::int64_t>() : std::span(held->integers(), held->elements);
    }
    // Used in mode floats only. The sums are then of the elements that have an integer on all workers.
    [[nodiscard]] std::span<numeric::ExactLane> exact(const FragmentRecord& record) {
        const Held& held = sums_[position(record)];
        return {held->exact(), held->elements};
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
        for (std::size_t place = 0; place < places_; ++place) {
            FragmentRecord::State state = used_[place] != 0 ? records_[place].state : FragmentRecord::State::idle;
            archive.value(state);
            if (Archive::reads) {
                drop_sums_at(place);
                used_[place] = state != FragmentRecord::State::idle ? 1 : 0;
                records_[place] = {.seq = static_cast<std::uint32_t>(place), .state = state};
            }
            if (state != FragmentRecord::State::idle) persist(archive, records_[place]);
        }
    }

  private:
    // The sums of one record, and behind this header their elements: integers, and with `floats` also exact lanes and
    // the packets that are in.
    struct HeldSums {
        std::size_t elements = 0;
        std::size_t capacity = 0;  // elements that fit
        std::uint64_t grown = 0;   // bytes taken from the budget; 0: reserved
        bool floats = false;

        [[nodiscard]] std::int64_t* integers() { return reinterpret_cast<std::int64_t*>(this + 1); }
        [[nodiscard]] numeric::ExactLane* exact() {
            return reinterpret_cast<numeric::ExactLane*>(integers() + capacity);
        }
        [[nodiscard]] FloatsIn* floats_in() { return reinterpret_cast<FloatsIn*>(exact() + capacity); }
    };
    using Held = std::unique_ptr<HeldSums, FreePages>;

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
            archive.value(r.lost), archive.value(r.unscaled);
            archive.value(r.passed_units);
            archive.value(r.count), archive.value(r.merges), archive.value(r.filled), archive.value(r.asks_owner);
            if (r.mode == FragmentRecord::Mode::floats) {
                // No packet has arrived of the elements behind these.
                if (Archive::reads) static_cast<void>(hold_floats(r, elements_, true));
                archive.bytes(std::as_writable_bytes(exact(r).first(elements)));
                archive.bytes(std::as_writable_bytes(sums(r).first(elements)));
                const std::span<FloatsIn> floats(&floats_in(r, 0, 0), units_ * ATP_BITMAP_BITS);
                archive.bytes(std::as_writable_bytes(floats));
            } else if (r.count != 0) {
                if (Archive::reads) static_cast<void>(hold_sums(r, elements_, true));
                archive.bytes(std::as_writable_bytes(sums(r).first(elements)));
            }
            for (unsigned u = 0; u < units_; ++u) archive.value(included(r)[u]), archive.value(sent(r)[u]);
        }
        archive.unread(r.notified_until);
        for (std::uint32_t& members : notified(r)) archive.unread(members);
    }

    [[nodiscard]] std::size_t position(const FragmentRecord& record) const { return record.seq % places_; }
    [[nodiscard]] std::span<std::uint32_t> row(const Pages<std::uint32_t>& masks, const FragmentRecord& record) const {
        return {masks.get() + position(record) * units_, units_};
    }
    [[nodiscard]] std::size_t bytes_of_sums(std::size_t elements, bool floats) const;
    // nullptr: none has room for so many elements.
    [[nodiscard]] Held spare_with(std::size_t elements);
    [[nodiscard]] bool hold(const FragmentRecord& record, std::size_t elements, bool floats, bool first);
    void release(Held sums);
    void drop_sums_at(std::size_t place);

    std::size_t payload_;   // words with elements in a full packet
    std::size_t elements_;  // of the longest fragment: int8, four in each word
    std::size_t audit_lanes_;
    std::size_t units_;
    std::size_t places_;  // 2W
    MemoryBudget* budget_;
    std::uint64_t grown_ = 0;         // taken from the budget
    std::vector<std::uint8_t> used_;  // per place: the record means something
    FragmentRecord unused_{};         // what at() returns for other places
    Pages<FragmentRecord> records_;   // per place
    Pages<std::uint32_t> in_;         // per place and unit
    Pages<std::uint32_t> sent_;       // per place and unit
    Pages<std::uint32_t> notified_;   // per place and unit
    Pages<std::byte> results_;        // per place
    std::vector<Held> sums_;          // per place
    std::vector<Held> spare_;         // integers only: a fragment that begins mostly follows one that ends
};

}  // namespace atp::protocol
