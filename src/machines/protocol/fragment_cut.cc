// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_cut.h"

#include <algorithm>
#include <cassert>

namespace atp::protocol {
namespace {

std::uint64_t divide_up(std::uint64_t elements, std::uint64_t by) { return (elements + by - 1) / by; }

}  // namespace

FragmentCut::FragmentCut(std::uint64_t elements, std::uint32_t longest, const Spans& spans)
    : elements_(elements),
      longest_(longest),
      span_(spans.length),
      head_(spans.offset == 0 ? 0 : std::min(spans.length - spans.offset, elements)),
      fragments_of_head_(static_cast<std::uint32_t>(divide_up(head_, longest))),
      fragments_of_span_(static_cast<std::uint32_t>(divide_up(spans.length, longest))) {
    assert(longest != 0 && (spans.length == 0 ? spans.offset == 0 : spans.offset < spans.length));
}

std::uint64_t FragmentCut::fragments() const {
    if (span_ == 0) return divide_up(elements_, longest_);
    const std::uint64_t behind_head = elements_ - head_;
    return fragments_of_head_ + behind_head / span_ * fragments_of_span_ + divide_up(behind_head % span_, longest_);
}

FragmentCut::Range FragmentCut::range(std::uint32_t number) const {
    std::uint64_t begin = 0;  // of the span
    std::uint64_t end = span_ == 0 ? elements_ : head_;
    if (span_ != 0 && number >= fragments_of_head_) {
        const std::uint32_t behind_head = number - fragments_of_head_;
        begin = head_ + behind_head / fragments_of_span_ * span_;
        end = std::min(begin + span_, elements_);
        number = behind_head % fragments_of_span_;
    }
    const std::uint64_t first = begin + std::uint64_t{number} * longest_;
    return {.first = first, .count = static_cast<std::size_t>(std::min<std::uint64_t>(longest_, end - first))};
}

}  // namespace atp::protocol
