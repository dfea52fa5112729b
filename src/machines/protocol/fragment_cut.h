// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::protocol {

// The parts of a tensor that have a scale each.
struct Spans {
    std::uint64_t length = 0;  // elements; 0: one scale for the whole tensor
    std::uint64_t offset = 0;  // of the tensor's first element in its span, below `length`
};

// How the elements of a tensor are cut into fragments. A fragment never crosses a boundary between spans, so it has one
// scale, whatever its length. All workers of a job cut a tensor equally.
//
// Ownership: a value. Calling order: any. Threads: none. Failure: none.
class FragmentCut {
  public:
    // A fragment's part of the tensor.
    struct Range {
        std::uint64_t first = 0;
        std::size_t count = 0;
    };

    FragmentCut() = default;
    // `longest`: elements of a full fragment, above 0.
    FragmentCut(std::uint64_t elements, std::uint32_t longest, const Spans& spans);

    [[nodiscard]] std::uint64_t fragments() const;
    // Fragments count from 0. Requires number < fragments().
    [[nodiscard]] Range range(std::uint32_t number) const;

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(elements_), archive.value(longest_), archive.value(span_), archive.value(head_),
            archive.value(fragments_of_head_), archive.value(fragments_of_span_);
    }

  private:
    std::uint64_t elements_ = 0;
    std::uint32_t longest_ = 1;
    std::uint64_t span_ = 0;  // elements; 0: none
    std::uint64_t head_ = 0;  // elements before the first boundary, if the tensor begins inside a span
    std::uint32_t fragments_of_head_ = 0;
    std::uint32_t fragments_of_span_ = 0;
};

}  // namespace atp::protocol
