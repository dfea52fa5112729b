// SPDX-License-Identifier: Apache-2.0
// Memory that nothing clears or touches before its use. The system then allocates it page by page on first access, so
// that what is large and hardly used costs little, and opening and closing it keeps nobody busy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace atp {

struct FreePages {
    void operator()(void* memory) const { std::free(memory); }
};

// The elements have no values yet.
template <class Element>
using Pages = std::unique_ptr<Element[], FreePages>;

// Throws std::bad_alloc.
template <class Element>
[[nodiscard]] Pages<Element> claim_pages(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<Element> && std::is_trivially_destructible_v<Element>);
    void* const memory = std::malloc(std::max<std::size_t>(count, 1) * sizeof(Element));
    if (memory == nullptr) throw std::bad_alloc();
    return Pages<Element>(static_cast<Element*>(memory));
}

}  // namespace atp
