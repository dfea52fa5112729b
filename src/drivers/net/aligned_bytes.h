// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace atp::net {

inline constexpr std::size_t cache_line_bytes = 64;

struct FreeAligned {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{cache_line_bytes}); }
};

// Packet memory: aligned to a cache line and not zeroed, so the thread that first uses a page allocates it.
using AlignedBytes = std::unique_ptr<std::byte[], FreeAligned>;

[[nodiscard]] inline AlignedBytes allocate_aligned(std::size_t bytes) {
    return AlignedBytes(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{cache_line_bytes})));
}

}  // namespace atp::net
