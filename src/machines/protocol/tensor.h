// SPDX-License-Identifier: Apache-2.0
// Where a tensor's elements come from and where its sums go. A worker reads a fragment each time it (re)sends it and
// writes it once, after which it never reads it again: so input and output may be the same memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "numeric/lanes.h"
#include "protocol/fragment_format.h"
#include "wire/format.h"

namespace atp::protocol {

// How a fragment's integers travel. All workers of a job must say the same of a fragment.
struct Format {
    std::uint8_t scale = scale_of_job;
    bool shorts = false;  // two numbers to a lane

    // What a gradient's argument says of it, so that gradients of different formats are never added.
    [[nodiscard]] constexpr std::uint16_t mark() const {
        return static_cast<std::uint16_t>(scale | (shorts ? 1U : 0U) << 8U);
    }
    [[nodiscard]] constexpr std::size_t lanes_of(std::size_t elements) const {
        return shorts ? elements / 2 : elements;
    }
};

class Tensor {
  public:
    virtual ~Tensor() = default;

    [[nodiscard]] virtual std::uint64_t size() const = 0;  // elements, one lane each
    // Whether its integers are the numbers themselves, and so are the sums. Every worker of the job has to say the same
    // of a tensor.
    [[nodiscard]] virtual bool plain() const { return false; }
    // A hash of what is done and to how many elements: workers that do different things at one place of the stream are
    // told so, instead of sums that mean nothing.
    [[nodiscard]] virtual std::uint16_t purpose() const { return 0; }
    // Whether these elements can be read. A worker waits for those that cannot, and with them for all that follow; who
    // makes them ready calls for the worker to be polled. What is ready stays so.
    [[nodiscard]] virtual bool ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const { return true; }
    // Of a fragment with these elements; the same for as long as it has no result. Shorts only for an even number of
    // elements, and never of a plain tensor.
    [[nodiscard]] virtual Format format(std::uint64_t /*first*/, std::uint64_t /*count*/) const { return {}; }
    // Elements first, first + 1, ... as big-endian lanes of the fragment's format, as many as fit. False when one of
    // them cannot be an integer at its scale (NaN, Inf, too large): the fragment then travels as floats. Never false of
    // a plain tensor.
    [[nodiscard]] virtual bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const = 0;
    virtual void load_floats(std::uint64_t first, std::span<std::byte> lanes) const = 0;
    // The sums of elements first, first + 1, ...: big-endian int32 of a plain tensor, float32 of any other. Fragments
    // come in any order, each once.
    virtual void store(std::uint64_t first, std::span<const std::byte> lanes) = 0;
    // Those of a fragment of shorts, as shorts, in place of store().
    virtual void store_shorts(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) { assert(false); }
};

// Integers that are summed as they are, modulo 2^32.
class PlainTensor : public Tensor {
  public:
    [[nodiscard]] bool plain() const final { return true; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const final {
        load(first, lanes);
        return true;
    }
    // Nobody asks a plain tensor for floats.
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> lanes) const final {
        assert(false);
        std::ranges::fill(lanes, std::byte{0});
    }

  protected:
    virtual void load(std::uint64_t first, std::span<std::byte> lanes) const = 0;
};

// float32 in, float32 out; the usual case, and the pattern for other element types.
class FloatTensor final : public Tensor {
  public:
    // The spans have equal length, may be the same, and outlive the operation.
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

  private:
    std::span<const float> input_;
    std::span<float> output_;
    float scale_;
};

}  // namespace atp::protocol
