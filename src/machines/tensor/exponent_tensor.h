// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "protocol/tensor.h"

namespace atp::tensor {

// Finds the largest exponent of a finite element of each span on any rank, without any sum of the elements (H51,
// docs/spec/hazards.md#h51). The plain lanes of a span count the ranks that have each exponent as their largest one: as
// many counts in a lane as fit. Their sums never carry into a neighbour.
//
// Ownership: shares the tensors of the operation, and reads each span before any element of it is sent.
// Calling order: that of protocol::Tensor. `found` is called once, by the store() that completes the sums.
// Threads: one. Failure: none.
class ExponentTensor final : public protocol::PlainTensor {
  public:
    using Tensors = std::vector<std::shared_ptr<const protocol::Tensor>>;
    // The exponent as the 8 bits of a float32; nullopt: all finite elements are 0 on all ranks.
    using Exponents = std::vector<std::optional<unsigned>>;
    // The exponents of the spans of the first tensor, then those of the second one, and so on.
    using Found = std::function<void(const Exponents& exponents)>;

    struct Rules {
        std::uint32_t ranks = 1;
        std::uint64_t span = 1;  // elements of each span of a tensor but the last
    };

    ExponentTensor(const Tensors& tensors, const Rules& rules, Found found);

    [[nodiscard]] std::uint64_t size() const override { return spans_.size() * lanes_of_span(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

    [[nodiscard]] unsigned lanes_of_span() const { return (all_exponents + counts_of_lane() - 1) / counts_of_lane(); }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    static constexpr unsigned all_exponents = 256;
    static constexpr unsigned bits_of_lane = 32;

    struct Span {
        std::shared_ptr<const protocol::Tensor> tensor;
        std::uint64_t first = 0;
        std::uint64_t count = 0;
        bool read = false;
        std::optional<unsigned> own{};  // of this rank; valid if `read`
    };

    [[nodiscard]] unsigned counts_of_lane() const { return bits_of_lane / bits_of_count_; }
    [[nodiscard]] std::optional<unsigned> own(std::size_t span) const;

    unsigned bits_of_count_;
    Found found_;
    mutable std::vector<Span> spans_;
    Exponents largest_;  // of the sums that are stored
    std::uint64_t stored_ = 0;
};

}  // namespace atp::tensor
