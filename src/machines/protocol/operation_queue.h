// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "protocol/fragment_cut.h"
#include "protocol/tensor.h"

namespace atp::protocol {

// Operations of one channel in the order of submission. Together their fragments are one stream: an operation begins
// where the one before it ends. Operations have numbers, counted from 0.
//
// Ownership: owns `capacity` entries, allocated at construction. Borrows each Tensor until pop() removes its operation.
// Calling order: push() an operation, complete_fragment() once for each of its fragments, then pop(), the oldest first.
//   After a failure, pop() may remove an operation that lacks fragments.
// Threads: none.
// Failure: push() returns nothing if the queue is full.
class OperationQueue {
  public:
    struct Entry {
        Tensor* tensor = nullptr;
        FragmentCut cut;     // of the tensor
        bool plain = false;  // Tensor::plain()
        std::uint8_t form = ATP_DTYPE_INT32;
        bool widened = false;         // the tensor has a narrower form: its integers are sent as int32
        std::uint32_t first_seq = 0;  // position of its first fragment in the stream
        std::uint32_t fragments = 0;
        std::uint32_t missing = 0;  // fragments without a result
        Time submitted_at{};
        Time deadline = never;

        // The elements of the fragment at `seq`, which is one of this operation.
        [[nodiscard]] FragmentCut::Range range(std::uint32_t seq) const { return cut.range(seq - first_seq); }
    };

    // `first_seq`: position of the first fragment of the first operation.
    OperationQueue(std::uint32_t capacity, std::uint32_t first_seq)
        : capacity_(capacity), entries_(std::bit_ceil(std::size_t{capacity})), end_seq_(first_seq) {}

    // Appends an operation and returns its number. The cut has at least one fragment and less than 2^32. `as_int32`:
    // its fragments have the form int32, whatever the tensor says.
    [[nodiscard]] std::optional<std::uint64_t> push(Tensor& tensor, const FragmentCut& cut, Time now, Time deadline,
                                                    bool as_int32 = false);
    // Removes the oldest operation and returns its number. Requires a queued operation.
    std::uint64_t pop() { return first_++; }
    // Records the result of a fragment of operation `number`. Returns how many fragments the operation lacks.
    std::uint32_t complete_fragment(std::uint64_t number) {
        Entry& entry = entries_[place(number)];
        assert(entry.missing != 0);
        if (--entry.missing == 0 && entry.deadline == deadline_) deadline_ = earliest_deadline();
        return entry.missing;
    }

    [[nodiscard]] bool empty() const { return first_ == end_; }
    [[nodiscard]] std::uint64_t first() const { return first_; }  // number of the oldest operation
    [[nodiscard]] std::uint64_t end() const { return end_; }      // number of the next operation
    [[nodiscard]] const Entry& operator[](std::uint64_t number) const { return entries_[place(number)]; }
    // Number of the operation that has the fragment at `seq`. Requires that this operation is in the queue.
    [[nodiscard]] std::uint64_t find(std::uint32_t seq) const;
    // One past the last fragment of the last operation.
    [[nodiscard]] std::uint32_t end_seq() const { return end_seq_; }
    // Fragments of all operations in the queue.
    [[nodiscard]] std::uint32_t fragments() const { return empty() ? 0 : end_seq_ - (*this)[first_].first_seq; }
    // Earliest deadline of the operations that lack fragments; `never` if there is none.
    [[nodiscard]] Time deadline() const { return deadline_; }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(first_), archive.value(end_), archive.value(end_seq_), archive.time(deadline_);
        for (std::uint64_t number = first_; number != end_; ++number) {
            Entry& e = entries_[place(number)];
            archive.value(e.tensor), e.cut.persist(archive), archive.value(e.plain), archive.value(e.form);
            archive.value(e.widened);
            archive.value(e.first_seq), archive.value(e.fragments), archive.value(e.missing);
            archive.time(e.submitted_at), archive.time(e.deadline);
        }
    }

  private:
    [[nodiscard]] Time earliest_deadline() const;

    // The number of entries is a power of two: every packet looks its operation up.
    [[nodiscard]] std::size_t place(std::uint64_t number) const { return number & (entries_.size() - 1); }

    std::uint32_t capacity_;
    std::vector<Entry> entries_;
    std::uint64_t first_ = 0;
    std::uint64_t end_ = 0;
    std::uint32_t end_seq_;
    Time deadline_ = never;
};

}  // namespace atp::protocol
