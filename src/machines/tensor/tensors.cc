// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensors.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "numeric/half.h"
#include "numeric/lanes32_switch.h"
#include "numeric/lanes32_worker.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

// Elements converted in one step, on the stack.
constexpr std::size_t chunk = 256;

std::size_t lanes_in(std::span<const std::byte> lanes) { return lanes.size() / ATP_LANE_BYTES; }

// --- scaled numbers: each format converts elements to float32, and a sum times the factor to elements

struct Float32 {
    using Element = float;
    static constexpr std::optional native = numeric::ElementType::float32;
    static const float* to_floats(const float* elements, std::size_t /*count*/, float* /*buffer*/) { return elements; }
    static void from_floats(const float* sums, std::size_t count, double factor, float* elements) {
        for (std::size_t at = 0; at < count; ++at) elements[at] = static_cast<float>(double{sums[at]} * factor);
    }
};

struct Float64 {
    using Element = double;
    static constexpr std::optional<numeric::ElementType> native{};
    static const float* to_floats(const double* elements, std::size_t count, float* buffer) {
        for (std::size_t at = 0; at < count; ++at) buffer[at] = static_cast<float>(elements[at]);
        return buffer;
    }
    static void from_floats(const float* sums, std::size_t count, double factor, double* elements) {
        for (std::size_t at = 0; at < count; ++at) elements[at] = double{sums[at]} * factor;
    }
};

template <numeric::ElementType type, void (*widen)(const std::uint16_t*, std::size_t, float*),
          void (*narrow)(const float*, std::size_t, std::uint16_t*)>
struct Float16 {
    using Element = std::uint16_t;
    static constexpr std::optional native = type;
    static const float* to_floats(const std::uint16_t* elements, std::size_t count, float* buffer) {
        widen(elements, count, buffer);
        return buffer;
    }
    static void from_floats(const float* sums, std::size_t count, double factor, std::uint16_t* elements) {
        std::array<float, chunk> scaled;
        assert(count <= scaled.size());
        Float32::from_floats(sums, count, factor, scaled.data());
        narrow(scaled.data(), count, elements);
    }
};

template <class Format>
class ScaledTensor final : public protocol::Tensor {
  public:
    using Element = typename Format::Element;

    ScaledTensor(const void* in, void* out, std::size_t elements, float scale, double factor)
        : in_(static_cast<const Element*>(in)),
          out_(static_cast<Element*>(out)),
          elements_(elements),
          scale_(scale),
          factor_(factor) {}

    [[nodiscard]] std::uint64_t size() const override { return elements_; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        return load_chunks(first, lanes, [this](const float* values, std::size_t count, std::byte* wire) {
            return numeric::quantise(values, count, scale_, wire);
        });
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        (void)load_chunks(first, lanes, [](const float* values, std::size_t count, std::byte* wire) {
            numeric::floats_to_wire(values, count, wire);
            return true;
        });
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        std::array<float, chunk> sums;
        for (std::size_t at = 0; at < lanes_in(lanes); at += chunk) {
            const std::size_t count = std::min(chunk, lanes_in(lanes) - at);
            numeric::floats_from_wire(lanes.data() + at * ATP_LANE_BYTES, count, sums.data());
            Format::from_floats(sums.data(), count, factor_, out_ + first + at);
        }
    }
    [[nodiscard]] protocol::NativeElements native() const override {
        if (!Format::native) return {};
        return {.type = *Format::native, .count = elements_, .factor = factor_, .in = in_, .out = out_};
    }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override {
        std::memcpy(elements.data(), in_ + first, elements.size());
    }
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        std::memcpy(out_ + first, sums.data(), sums.size());
    }

  private:
    // Stops at the first chunk for which `load` returns false.
    template <class Load>
    bool load_chunks(std::uint64_t first, std::span<std::byte> lanes, const Load& load) const {
        std::array<float, chunk> buffer;
        for (std::size_t at = 0; at < lanes_in(lanes); at += chunk) {
            const std::size_t count = std::min(chunk, lanes_in(lanes) - at);
            const float* values = Format::to_floats(in_ + first + at, count, buffer.data());
            if (!load(values, count, lanes.data() + at * ATP_LANE_BYTES)) return false;
        }
        return true;
    }

    const Element* in_;
    Element* out_;
    std::size_t elements_;
    float scale_;
    double factor_;
};

// --- plain integers

class Int32Tensor final : public protocol::PlainTensor {
  public:
    Int32Tensor(const void* in, void* out, std::size_t elements)
        : in_(static_cast<const std::int32_t*>(in)), out_(static_cast<std::int32_t*>(out)), elements_(elements) {}

    [[nodiscard]] std::uint64_t size() const override { return elements_; }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        numeric::lanes_store(lanes.data(), lanes_in(lanes), out_ + first);
    }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        numeric::lanes_emit(in_ + first, lanes_in(lanes), lanes.data());
    }

  private:
    const std::int32_t* in_;
    std::int32_t* out_;
    std::size_t elements_;
};

constexpr unsigned shift_of(std::size_t limb) { return static_cast<unsigned>(limb) * bits_of_limb; }

constexpr std::uint32_t limb_mask = (1U << bits_of_limb) - 1U;
constexpr std::int32_t half_limb = 1 << (bits_of_limb - 1);
constexpr std::int32_t half_last_limb = 1 << (63U - shift_of(2));  // the last digit has the remaining bits of 64
constexpr std::uint64_t balance = (std::uint64_t{half_limb} << shift_of(0)) +
                                  (std::uint64_t{half_limb} << shift_of(1)) +
                                  (std::uint64_t{half_last_limb} << shift_of(2));

// The bound of tensors.h, for the largest job and the extreme values of a lane.
constexpr std::int64_t workers_max = std::int64_t{ATP_BITMAP_BITS} * ATP_BITMAP_BITS;
static_assert(-half_limb * workers_max >= INT32_MIN && (half_limb - 1) * workers_max <= INT32_MAX);
static_assert(half_last_limb <= half_limb);

using Limbs = std::array<std::int32_t, lanes_of_int64>;

// Adding `balance` makes every digit non-negative, so shifts and masks extract it. Each digit is then too high by half
// of its base.
constexpr Limbs split(std::uint64_t value) {
    const std::uint64_t raised = value + balance;
    return {static_cast<std::int32_t>(raised & limb_mask) - half_limb,
            static_cast<std::int32_t>(raised >> shift_of(1) & limb_mask) - half_limb,
            static_cast<std::int32_t>(raised >> shift_of(2)) - half_last_limb};
}

// The part of an element's sum that the sum of one of its lanes contributes, modulo 2^64.
constexpr std::uint64_t contribution(std::int32_t sum, std::size_t limb) {
    return static_cast<std::uint64_t>(std::int64_t{sum}) << shift_of(limb);
}

constexpr std::uint64_t join(const Limbs& sums) {
    return contribution(sums[0], 0) + contribution(sums[1], 1) + contribution(sums[2], 2);
}

static_assert(join(split(0x8000000000000000U)) == 0x8000000000000000U &&
              join(split(~std::uint64_t{0})) == ~std::uint64_t{0});

std::int32_t lane_at(const std::byte* wire) { return static_cast<std::int32_t>(wire::load_u32(wire)); }

// int64 elements, three adjacent lanes each. A fragment therefore cuts at most its first and its last element.
//
// A cut element is written when the last of its lanes has arrived. Until then a resend of the neighbouring fragment may
// read its input, which can be the same memory. The partial sum waits in `cuts_`. If results arrive in order, there is
// one entry at a time. There are at most as many entries as fragments in flight, plus one.
// Threads: a lock protects `cuts_`, which all channels share. It is taken for cut elements only.
class Int64Tensor final : public protocol::PlainTensor {
  public:
    Int64Tensor(const void* in, void* out, std::size_t elements)
        : in_(static_cast<const std::uint64_t*>(in)), out_(static_cast<std::uint64_t*>(out)), elements_(elements) {
        cuts_.reserve(usual_cuts);
    }

    [[nodiscard]] std::uint64_t size() const override { return std::uint64_t{elements_} * lanes_of_int64; }
    [[nodiscard]] protocol::NativeElements native() const override {
        return {.type = numeric::ElementType::int64, .count = elements_};
    }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override {
        std::memcpy(elements.data(), in_ + first, elements.size());
    }
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        std::memcpy(out_ + first, sums.data(), sums.size());
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        const std::byte* wire = lanes.data();
        std::uint64_t lane = first;
        const std::uint64_t end = first + lanes_in(lanes);
        for (; lane != end && lane % lanes_of_int64 != 0; ++lane, wire += ATP_LANE_BYTES) {
            store_part(lane, lane_at(wire));
        }
        for (; end - lane >= lanes_of_int64; lane += lanes_of_int64, wire += lanes_of_int64 * ATP_LANE_BYTES) {
            out_[lane / lanes_of_int64] =
                join({lane_at(wire), lane_at(wire + ATP_LANE_BYTES), lane_at(wire + 2 * ATP_LANE_BYTES)});
        }
        for (; lane != end; ++lane, wire += ATP_LANE_BYTES) store_part(lane, lane_at(wire));
    }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        std::byte* wire = lanes.data();
        std::uint64_t element = first / lanes_of_int64;
        std::size_t limb = first % lanes_of_int64;  // not 0: the first element is cut
        for (std::size_t left = lanes_in(lanes); left != 0; ++element, limb = 0) {
            const Limbs limbs = split(in_[element]);
            for (; limb != lanes_of_int64 && left != 0; ++limb, --left, wire += ATP_LANE_BYTES) {
                wire::store_u32(wire, static_cast<std::uint32_t>(limbs[limb]));
            }
        }
    }

  private:
    static constexpr std::size_t usual_cuts = 64;

    struct Cut {
        std::uint64_t element = 0;
        std::uint64_t sum = 0;
        std::size_t lanes = 0;  // included in `sum`
    };

    void store_part(std::uint64_t lane, std::int32_t sum) {
        const std::uint64_t element = lane / lanes_of_int64;
        const std::scoped_lock lock(cuts_mutex_);
        auto cut = std::ranges::find(cuts_, element, &Cut::element);
        if (cut == cuts_.end()) cut = cuts_.insert(cut, Cut{.element = element});
        cut->sum += contribution(sum, lane % lanes_of_int64);
        if (++cut->lanes != lanes_of_int64) return;
        out_[element] = cut->sum;
        *cut = cuts_.back();
        cuts_.pop_back();
    }

    const std::uint64_t* in_;
    std::uint64_t* out_;
    std::size_t elements_;
    std::mutex cuts_mutex_;
    std::vector<Cut> cuts_;
};

// One worker contributes its bits and all others zeros, so the sum of each lane is those bits. Bytes are copied in
// order, so the byte orders of the hosts do not matter.
class BroadcastTensor final : public protocol::PlainTensor {
  public:
    BroadcastTensor(const void* root, void* out, std::size_t bytes, std::optional<std::uint32_t> source)
        : root_(static_cast<const std::byte*>(root)),
          out_(static_cast<std::byte*>(out)),
          bytes_(bytes),
          source_(source) {}

    [[nodiscard]] std::uint64_t size() const override { return (bytes_ + ATP_LANE_BYTES - 1) / ATP_LANE_BYTES; }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        // On the root, `out` may be `root`: the copy then writes the same bytes.
        if (out_ != nullptr) std::memcpy(out_ + first * ATP_LANE_BYTES, lanes.data(), bytes_of_range(first, lanes));
    }
    [[nodiscard]] std::optional<std::uint32_t> sole_source() const override { return source_; }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        const std::size_t own = root_ == nullptr ? 0 : bytes_of_range(first, lanes);
        if (own != 0) std::memcpy(lanes.data(), root_ + first * ATP_LANE_BYTES, own);
        std::ranges::fill(lanes.subspan(own), std::byte{0});
    }

  private:
    // Less than lanes.size() only for the last lanes of the tensor.
    [[nodiscard]] std::size_t bytes_of_range(std::uint64_t first, std::span<const std::byte> lanes) const {
        return std::min<std::size_t>(lanes.size(), bytes_ - first * ATP_LANE_BYTES);
    }

    const std::byte* root_;
    std::byte* out_;
    std::size_t bytes_;
    std::optional<std::uint32_t> source_;
};

// Sums of float32 are the usual case: the protocol's own tensor converts them without an intermediate buffer.
std::unique_ptr<protocol::Tensor> make_float_tensor(const void* in, void* out, std::size_t elements, float scale,
                                                    double factor) {
    if (factor != 1) return std::make_unique<ScaledTensor<Float32>>(in, out, elements, scale, factor);
    return std::make_unique<protocol::FloatTensor>(std::span(static_cast<const float*>(in), elements),
                                                   std::span(static_cast<float*>(out), elements), scale);
}

using HalfTensor =
    ScaledTensor<Float16<numeric::ElementType::float16, numeric::halves_to_floats, numeric::floats_to_halves>>;
using BfloatTensor =
    ScaledTensor<Float16<numeric::ElementType::bfloat16, numeric::bfloats_to_floats, numeric::floats_to_bfloats>>;

}  // namespace

std::unique_ptr<protocol::Tensor> make_sum_tensor(numeric::ElementType type, const void* in, void* out,
                                                  std::size_t elements, float scale, double factor) {
    assert(factor == 1 || !numeric::is_integer(type));
    switch (type) {
        case numeric::ElementType::float32: return make_float_tensor(in, out, elements, scale, factor);
        case numeric::ElementType::float64:
            return std::make_unique<ScaledTensor<Float64>>(in, out, elements, scale, factor);
        case numeric::ElementType::float16: return std::make_unique<HalfTensor>(in, out, elements, scale, factor);
        case numeric::ElementType::bfloat16: return std::make_unique<BfloatTensor>(in, out, elements, scale, factor);
        case numeric::ElementType::int32: return std::make_unique<Int32Tensor>(in, out, elements);
        case numeric::ElementType::int64: return std::make_unique<Int64Tensor>(in, out, elements);
    }
    return nullptr;
}

std::unique_ptr<protocol::Tensor> make_broadcast_tensor(const void* root, void* out, std::size_t bytes,
                                                        std::optional<std::uint32_t> source) {
    return std::make_unique<BroadcastTensor>(root, out, bytes, source);
}

}  // namespace atp::tensor
