// SPDX-License-Identifier: Apache-2.0
// Source of a tensor's elements, and destination of its sums. A worker reads a fragment each time it sends or resends
// it. It writes the fragment once and never reads it afterwards, so input and output may be the same memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "numeric/element_type.h"
#include "numeric/lanes32_worker.h"
#include "protocol/delivery.h"
#include "protocol/fragment_cut.h"
#include "protocol/fragment_format.h"
#include "wire/format.h"

namespace atp::protocol {

// How ranks that share memory sum a tensor without lanes: as elements of one type, in the byte order of the host.
struct NativeElements {
    numeric::ElementType type = numeric::ElementType::float32;
    std::uint64_t count = 0;  // 0: the tensor has none, and its lanes are summed
    double factor = 1;        // applied to each sum before it is rounded to the type; 1 for integers
    // Where the elements and their sums lie, one after the other; nullptr: load_native() and store_native() know.
    const void* in = nullptr;
    void* out = nullptr;
};

class Tensor {
  public:
    virtual ~Tensor() = default;

    [[nodiscard]] virtual std::uint64_t size() const = 0;  // elements
    // True if lanes carry the elements themselves, unscaled; the sums are then unscaled too. All workers of the job
    // must return the same for a tensor.
    [[nodiscard]] virtual bool plain() const { return false; }
    // Hash of the operation and its number of elements. If workers run different operations at one position of the
    // stream, they get an error and no meaningless sums.
    [[nodiscard]] virtual std::uint16_t purpose() const { return 0; }
    // True if these elements can be read. A worker waits for elements that are not ready, and sends no later elements
    // before them. The code that makes elements ready then calls Waker::advance(). Ready elements stay ready.
    [[nodiscard]] virtual bool ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const { return true; }
    // Type of the integers: ATP_DTYPE_INT32, ATP_DTYPE_INT16 or ATP_DTYPE_INT8; of a plain tensor ATP_DTYPE_INT32. All
    // workers of the job must return the same for a tensor.
    [[nodiscard]] virtual std::uint8_t form() const { return ATP_DTYPE_INT32; }
    // All workers of the job must return the same for a tensor.
    [[nodiscard]] virtual Spans spans() const { return {}; }
    // Scale of the span with this element: scale_of_job, or a byte of its own. It is known when elements of the span
    // are ready, and constant from then on. All workers of the job must return the same.
    [[nodiscard]] virtual std::uint8_t scale(std::uint64_t /*first*/) const { return scale_of_job; }
    // Who sends the fragment that begins at this element, and who gets its result. A fragment with one sender requires
    // a plain tensor. load_integers() is called on senders only, store() on receivers only.
    [[nodiscard]] virtual Delivery delivery(std::uint64_t /*first*/) const { return {}; }
    // True if the elements are sent as floats by choice: load_integers() always returns false.
    [[nodiscard]] virtual bool floats_only() const { return false; }
    // Writes elements first, first + 1, ... of one span as big-endian integers of type form(), as many as fit. Returns
    // false if an element has no integer of that type at its scale (NaN, Inf, too large): the fragment is then sent as
    // floats. A plain tensor never returns false.
    [[nodiscard]] virtual bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const = 0;
    // The same as float32.
    virtual void load_floats(std::uint64_t first, std::span<std::byte> lanes) const = 0;
    // Ranks whose integers this tensor adds. Floats are never added before the server, so they travel rank by rank
    // (H48, docs/spec/hazards.md#h48). With one rank, load_floats() is called, otherwise load_floats_of().
    [[nodiscard]] virtual unsigned float_ranks() const { return 1; }
    virtual void load_floats_of(unsigned /*rank*/, std::uint64_t first, std::span<std::byte> lanes) const {
        load_floats(first, lanes);
    }
    // Stores the sums of elements first, first + 1, ... of one span: big-endian int32 for a plain tensor, otherwise
    // float32. Sums arrive in any order, each once.
    virtual void store(std::uint64_t first, std::span<const std::byte> lanes) = 0;
    // The same for sums of type form(), if that is narrower than int32.
    virtual void store_narrow(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) { assert(false); }

    // A packet asked for another form of a plain fragment than integers that switches add, or brought its result as
    // floats. If no sum leaves 32 bits, nobody who is honest sends such a packet.
    virtual void note_demand() const {}

    // `first` counts elements of native(). All workers of a tensor have equal native elements.
    [[nodiscard]] virtual NativeElements native() const { return {}; }
    virtual void load_native(std::uint64_t /*first*/, std::span<std::byte> /*elements*/) const { assert(false); }
    virtual void store_native(std::uint64_t /*first*/, std::span<const std::byte> /*sums*/) { assert(false); }
    // Elements with a scale of their own where all ranks share memory: those of a span, or fewer, which divide it.
    [[nodiscard]] virtual std::uint64_t cell() const { return spans().length; }
    [[nodiscard]] virtual std::uint8_t cell_scale(std::uint64_t first) const { return scale(first); }
    // After store_native() of elements that begin a span: the largest magnitude in the sums of each cell, before the
    // factor; NaN if one of them is NaN. The tensor finds it in the sums of store() and store_narrow() itself.
    virtual void settle(std::uint64_t /*first*/, std::uint64_t /*count*/, std::span<const float> /*largest*/) {}
    // Where all ranks share memory, the scale of a span is known only when all have loaded it: each rank writes its
    // vote with its elements, and the rank that adds them passes the sum of the votes to decide(). Then scale() is
    // known.
    [[nodiscard]] virtual std::uint32_t vote(std::uint64_t /*first*/) const { return 0; }
    virtual void decide(std::uint64_t /*first*/, std::uint32_t /*votes*/) {}
    // The only worker whose elements are not all zero; nullopt: there may be several.
    [[nodiscard]] virtual std::optional<std::uint32_t> sole_source() const { return std::nullopt; }
};

// Unscaled integers, summed modulo 2^32.
class PlainTensor : public Tensor {
  public:
    [[nodiscard]] bool plain() const final { return true; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const final {
        load(first, lanes);
        return true;
    }
    // The worker requests no floats of a plain tensor.
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> lanes) const final {
        assert(false);
        std::ranges::fill(lanes, std::byte{0});
    }

  protected:
    virtual void load(std::uint64_t first, std::span<std::byte> lanes) const = 0;
};

// float32 input and output: the usual case, and the model for other element types.
class FloatTensor final : public Tensor {
  public:
    // The spans have equal length, may be the same memory, and must outlive the operation.
    FloatTensor(std::span<const float> input, std::span<float> output, float scale)
        : input_(input), output_(output), scale_(scale) {}

    [[nodiscard]] std::uint64_t size() const override { return input_.size(); }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        return numeric::quantise(input_.data() + first, lanes.size() / ATP_LANE_BYTES, scale_, lanes.data());
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        numeric::floats_to_wire(input_.data() + first, lanes.size() / ATP_LANE_BYTES, lanes.data());
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        numeric::floats_from_wire(lanes.data(), lanes.size() / ATP_LANE_BYTES, output_.data() + first);
    }
    [[nodiscard]] NativeElements native() const override {
        return {
            .type = numeric::ElementType::float32, .count = input_.size(), .in = input_.data(), .out = output_.data()};
    }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override {
        std::memcpy(elements.data(), input_.data() + first, elements.size());
    }
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        std::memcpy(output_.data() + first, sums.data(), sums.size());
    }

  private:
    std::span<const float> input_;
    std::span<float> output_;
    float scale_;
};

}  // namespace atp::protocol
