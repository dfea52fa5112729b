// SPDX-License-Identifier: Apache-2.0
// Scales that follow the magnitude of the sums. A tensor with such scales has one for each span.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "numeric/element_type.h"
#include "protocol/fragment_format.h"
#include "protocol/waker.h"
#include "wire/format.h"

namespace atp::tensor {

// Elements of a span, counted from the start of the whole tensor. It depends on nothing but the form, so neither do the
// bits of a sum. int32 has digits to spare for numbers below the largest one; its longer spans fill packets of 64 KiB,
// which the network within one machine has.
[[nodiscard]] constexpr std::uint64_t span_elements(std::uint8_t form) {
    constexpr std::uint64_t usual_packet = 352;
    return (form == ATP_DTYPE_INT32 ? 46 : 16) * usual_packet;
}

[[nodiscard]] constexpr std::uint64_t spans_of(std::uint64_t elements, std::uint8_t form) {
    return (elements + span_elements(form) - 1) / span_elements(form);
}

// Elements of a cell: the part of a span that has a multiple of its own. Narrow integers have too few digits for all
// numbers of a span. Packets have the scale of the span, so a rank multiplies the numbers of each cell by a power of
// two before it sends them, and divides the sums by it.
[[nodiscard]] constexpr std::uint64_t cell_elements(std::uint8_t form) {
    return form == ATP_DTYPE_INT32 ? span_elements(form) : 128;
}

// Bits of the largest integer in the sums of a cell, by the types of the integers and of the elements. Those that
// remain are room in which sums can grow: four-fold at least, and two-fold for float16 in int16, whose digits would
// suffer. float32 has 24 bits, so int32 keeps all of them.
[[nodiscard]] int bits_of_sum(std::uint8_t form, numeric::ElementType type = numeric::ElementType::float32);

// Bits of a magnitude in the order of their values: those of a float32 without its sign. NaN is above infinity.
[[nodiscard]] std::uint32_t magnitude_bits(float value);
inline constexpr std::uint32_t infinity_bits = 0x7F800000U;

// The scale for the next operation, after one at `used` had sums of this largest magnitude. It falls to any sum; it
// rises by at most `most_rise`, so one operation of small sums does not make the next one overflow (H52,
// docs/spec/hazards.md#h52). An infinite sum or NaN lowers it by one, and zeros keep it.
[[nodiscard]] std::uint8_t next_scale(std::uint8_t used, std::uint32_t largest, int bits);
inline constexpr int most_rise = 4;

// Most bits by which the scale of a cell exceeds that of the coarsest cell of its span. More would save few digits, and
// small numbers, whose magnitude changes most, would often leave their integers.
inline constexpr int most_gain = 2;
// No cell exceeds another one above this scale, 2^100: products with powers of two then have no subnormal numbers.
inline constexpr std::uint8_t finest_gain = protocol::scale_byte(100);

// Bits of the largest integer that sums of an operation without a reference may have. Their bound is known, so narrow
// forms need no room.
[[nodiscard]] int bits_of_first_sum(std::uint8_t form);

// The scale of a span without a reference. `exponent`: of the largest finite magnitude of an element on any rank, as 8
// bits of a float32; nullopt: all elements are zero. `bits`: bits_of_first_sum().
[[nodiscard]] std::uint8_t first_scale(std::optional<unsigned> exponent, std::uint32_t ranks, int bits,
                                       double job_scale);

// Magnitude from which a number of one rank keeps a span at `scale`: the sum of `ranks` such numbers lies a third of
// the bits below the sums for which the scale was made. At least one integer.
[[nodiscard]] std::uint32_t least_magnitude(std::uint8_t scale, std::uint32_t ranks, int bits);

// The scales of one operation, and those that follow for an operation that has it as reference.
//
// Ownership: owns the scales; shares `feed`, and its reference until forget_reference().
// Calling order: ready() of a span until it returns true, then proposal(), coarsest() and decide(), which may be
//   repeated, then scale(), cell_scale() and units() any number of times; record() for the sums of a cell, then
//   settle() for these elements of its span, each once. A rank that lacks the sums of a cell calls settle_cell()
//   instead. An operation without a reference is not ready before begin().
// Threads: any. Failure: none.
class SpanScales {
  public:
    // `reference` has the same number of elements, the same form and type of elements, or is nullptr.
    SpanScales(std::uint64_t elements, std::uint8_t form, std::shared_ptr<SpanScales> reference,
               std::shared_ptr<protocol::Waker> feed, numeric::ElementType type = numeric::ElementType::float32);

    [[nodiscard]] std::uint64_t elements() const { return elements_; }
    [[nodiscard]] std::uint64_t count() const { return spans_.size(); }
    // Before forget_reference().
    [[nodiscard]] bool has_reference() const { return reference_ != nullptr; }
    // Elements of each span, and of each cell, but the last.
    [[nodiscard]] std::uint64_t span() const { return span_elements(form_); }
    [[nodiscard]] std::uint64_t cell() const { return cell_elements(form_); }
    [[nodiscard]] std::uint64_t cells() const { return cells_.size(); }
    [[nodiscard]] int bits() const { return bits_; }  // of the largest sum
    [[nodiscard]] std::uint8_t form() const { return form_; }
    // Without a reference: the scale of all cells, or of those of one span.
    void begin(std::uint8_t common);
    void begin(std::uint64_t span, std::uint8_t common);
    // True: the reference has the sums of this span. After it returned false, advance() of the feed is called as soon
    // as the answer may have changed.
    [[nodiscard]] bool ready(std::uint64_t span);
    // The scale that follows from the reference: that of the finest cell.
    [[nodiscard]] std::uint8_t proposal(std::uint64_t span) const { return spans_[span].used; }
    [[nodiscard]] std::uint8_t coarsest(std::uint64_t span) const { return spans_[span].coarsest; }
    // Accepts the proposal, or refuses it: the numbers of all ranks are too small for it, so the sum is exact.
    void decide(std::uint64_t span, bool accept);
    // After false, advance() of the feed is called as for ready().
    [[nodiscard]] bool decided(std::uint64_t span);
    // scale_of_job: not decided.
    [[nodiscard]] std::uint8_t scale(std::uint64_t span) const { return spans_[span].decided; }
    // Of a cell of a decided span: at most that of the span.
    [[nodiscard]] std::uint8_t cell_scale(std::uint64_t cell) const;
    // Units of a number 1 in a cell of a decided span.
    [[nodiscard]] double units(std::uint64_t cell) const { return protocol::scale_from(cell_scale(cell), 1); }
    // The largest magnitude in some sums of the cell.
    void record(std::uint64_t cell, std::uint32_t largest);
    // The sums of `count` elements of the span are recorded.
    void settle(std::uint64_t span, std::uint64_t count);
    // True: all sums of the span are recorded. After false, advance() of the feed is called as for ready().
    [[nodiscard]] bool poll_settled(std::uint64_t span);
    // What a later operation needs of the sums of a cell whose span is settled: the exponent of the largest magnitude,
    // as 8 bits of a float32. 0: all sums are 0. 255: one is infinite or NaN. Any other one is at least 1.
    [[nodiscard]] std::uint8_t exponent(std::uint64_t cell) const;
    // Records all sums of a cell by their exponent(), which another rank has, and settles them.
    void settle_cell(std::uint64_t cell, std::uint8_t exponent);
    // The operation no longer needs its reference: it is done, and no other thread uses its tensor.
    void forget_reference() { reference_.reset(); }

  private:
    struct Span {
        std::atomic<std::uint8_t> used{protocol::scale_of_job};  // scale_of_job: not known yet
        std::atomic<std::uint8_t> coarsest{protocol::scale_of_job};
        std::atomic<std::uint8_t> decided{protocol::scale_of_job};  // scale_of_job: not yet
        std::atomic<std::uint32_t> missing{0};                      // elements without a sum
    };
    struct Cell {
        std::atomic<std::uint8_t> used{protocol::scale_of_job};  // known as soon as that of the span
        std::atomic<std::uint32_t> largest{0};
    };

    // The first cell of a span, and the first one behind it.
    [[nodiscard]] std::uint64_t first_cell(std::uint64_t span) const { return span * cells_of_span_; }
    [[nodiscard]] std::uint64_t end_cell(std::uint64_t span) const;
    // The scales of the cells of the span in an operation that has this one as reference.
    void next_scales(std::uint64_t span, std::span<std::uint8_t> scales) const;
    // False: the span of the reference lacks sums.
    [[nodiscard]] bool follow(std::uint64_t span);
    [[nodiscard]] bool settled(std::uint64_t span) const { return spans_[span].missing == 0; }

    std::uint64_t elements_;
    std::uint8_t form_;
    int bits_;
    std::uint64_t cells_of_span_;
    std::vector<Span> spans_;
    std::vector<Cell> cells_;
    std::shared_ptr<SpanScales> reference_;
    std::shared_ptr<protocol::Waker> feed_;
    std::atomic<bool> waited_for_{false};  // an operation found a span unsettled or undecided since the last advance()
};

}  // namespace atp::tensor
