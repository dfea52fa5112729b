// SPDX-License-Identifier: Apache-2.0
// Synthetic tensors that need no memory. Each element is a function of (key, rank, tensor, fragment, lane). The
// expected sums are computed from the elements, and every result is compared with them bit by bit.
//
// Kinds of fragments, drawn by share:
//   small: integers whose partial sums all fit 32 bits: lane(rank) = pattern(lane) + weight(rank). All weights differ,
//     so a worker that is omitted, counted twice or exchanged shows in every lane.
//   overflow: integers at and near the limits of int32; some partial sums exceed 32 bits in some orders.
//   peak: small except for one lane, whose size is drawn from a distribution. In this lane each worker has its own
//     sign, and a magnitude between half of the size and the size.
//   floats: some workers hold NaN, infinities or numbers beyond int32; the sum is exact and then rounded to float32.
//   wide: any int32, including INT32_MIN; plain tensors contain these instead of floats.
// A share of the tensors is plain: unscaled integers that are summed modulo 2^32.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/tensor.h"
#include "random/random.h"

namespace atp::sim {

// A power of two near the usual 1e8. Integers have at most 24 bits, so the float and the integer of an element are the
// same number, and both conversions are exact.
inline constexpr double gradient_scale = 67108864.0;  // 2^26

struct GradientShape {
    std::uint64_t key = 0;  // from job, incarnation and channel: the same fragment differs between incarnations
    unsigned workers = 1;
    std::uint16_t payload_lanes = 61;
    std::uint32_t window = 256;  // fragments; results are cached for a few windows
    double float_share = 0;
    double overflow_share = 0;
    double plain_share = 0;  // share of tensors
    double owned_share = 0;  // share of tensors whose fragments have owners; half of these have one sender each
    std::optional<LogNormal>
        sizes{};             // distribution of the largest float of a fragment; its integer is that float times 1e8
    unsigned sum_bits = 30;  // bits of the partial sums of small elements, including the sign
};

// The gradients of all workers of one channel. Threads: one.
class GradientSource {
  public:
    explicit GradientSource(const GradientShape& shape);

    // Whether the tensor requires its sums as unscaled integers.
    [[nodiscard]] bool plain(std::uint64_t tensor) const;
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t tensor, std::uint64_t fragment) const;
    // False if this worker's values of the fragment do not fit integers.
    [[nodiscard]] bool integers(unsigned rank, std::uint64_t tensor, std::uint64_t fragment,
                                std::span<std::byte> lanes);
    void floats(unsigned rank, std::uint64_t tensor, std::uint64_t fragment, std::span<std::byte> lanes);
    // Whether the lanes are the sum of the fragment over all workers. If not, mismatch() describes the first
    // difference.
    // Of a fragment with one sender: whether they are those of the sender.
    [[nodiscard]] bool verify(std::uint64_t tensor, std::uint64_t fragment, std::span<const std::byte> lanes);

    [[nodiscard]] const GradientShape& shape() const { return shape_; }
    [[nodiscard]] const std::string& mismatch() const { return mismatch_; }  // the first mismatch

  private:
    enum class Kind : std::uint8_t { small, peak, overflow, floats, wide };

    struct Fragment {
        std::uint64_t tensor = 0;
        std::uint64_t number = 0;
        std::uint64_t key = 0;
        Kind kind = Kind::small;
        bool plain = false;
        bool known = false;  // this cache entry holds a fragment
        bool expected_known = false;
    };

    Fragment& fragment(std::uint64_t tensor, std::uint64_t number);
    [[nodiscard]] Kind draw_kind(std::uint64_t key, bool plain) const;
    [[nodiscard]] std::int32_t peak_of(std::uint64_t key) const;
    [[nodiscard]] std::span<std::byte> expected_of(const Fragment& fragment);
    void compute_floats(const Fragment& fragment, std::span<std::byte> out);
    void compute_expected(Fragment& fragment);
    void add_everybody(const Fragment& fragment, std::span<std::int64_t> sums);
    void fill_small(const Fragment& fragment, std::int32_t weight, std::span<std::int32_t> out) const;
    void fill_peak(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const;
    void fill_overflow(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const;
    void fill_wide(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const;
    void fill_integers(const Fragment& fragment, unsigned rank, std::span<std::int32_t> out) const;
    void write_floats(const Fragment& fragment, unsigned rank, std::span<std::byte> lanes);
    [[nodiscard]] bool odd(const Fragment& fragment, unsigned rank) const;
    [[nodiscard]] std::int32_t weight(unsigned rank) const { return weights_[rank]; }

    GradientShape shape_;
    std::uint32_t value_mask_ = 0;        // of a small element before centring
    std::vector<std::uint32_t> pattern_;  // random words, read from an offset that depends on the fragment
    std::vector<std::int32_t> weights_;
    std::int64_t weights_sum_ = 0;
    std::vector<Fragment> cache_;
    std::vector<std::byte> expected_;
    std::vector<std::int32_t> scratch_;
    std::string mismatch_;
};

// One tensor of one worker, for one channel.
class GradientTensor final : public protocol::Tensor {
  public:
    GradientTensor(GradientSource& source, unsigned rank, std::uint64_t tensor, std::uint64_t elements)
        : source_(source), rank_(rank), tensor_(tensor), elements_(elements), plain_(source.plain(tensor)) {}

    [[nodiscard]] std::uint64_t size() const override { return elements_; }
    [[nodiscard]] bool plain() const override { return plain_; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        bool fit = true;
        visit(first, lanes, [&](std::uint64_t number, std::span<std::byte> part) {
            fit = source_.integers(rank_, tensor_, number, part) && fit;
        });
        return fit;
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        visit(first, lanes,
              [&](std::uint64_t number, std::span<std::byte> part) { source_.floats(rank_, tensor_, number, part); });
    }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override {
        return source_.delivery(tensor_, fragment_of(first));
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        stored_ += lanes.size() / ATP_LANE_BYTES;
        visit(first, lanes, [&](std::uint64_t number, std::span<const std::byte> part) {
            right_ &= source_.verify(tensor_, number, part);
        });
    }

    // Every element for this worker was delivered once, and every result was correct.
    [[nodiscard]] bool right() const { return right_ && stored_ == received(); }
    [[nodiscard]] std::uint64_t stored() const { return stored_; }

  private:
    // Elements whose results this worker gets.
    [[nodiscard]] std::uint64_t received() const;
    [[nodiscard]] std::uint64_t fragment_of(std::uint64_t first) const { return first / source_.shape().payload_lanes; }
    // Calls `call(number of the fragment, its lanes)` for each of some fragments. The first one is `first`'s.
    template <class Lanes, class Call>
    void visit(std::uint64_t first, Lanes lanes, const Call& call) const {
        const std::size_t whole = std::size_t{source_.shape().payload_lanes} * ATP_LANE_BYTES;
        for (std::uint64_t number = fragment_of(first); !lanes.empty(); ++number) {
            const Lanes part = lanes.first(std::min(whole, lanes.size()));
            call(number, part);
            lanes = lanes.subspan(part.size());
        }
    }

    GradientSource& source_;
    unsigned rank_;
    std::uint64_t tensor_;
    std::uint64_t elements_;
    bool plain_;
    std::uint64_t stored_ = 0;
    bool right_ = true;
};

}  // namespace atp::sim
