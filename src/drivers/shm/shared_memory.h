// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/result.h"
#include "net/descriptor.h"

namespace atp::shm {

// Memory that several processes map. It has no name in any file system, so nothing stays behind.
//
// Ownership: owns its descriptor and its mapping.
// Calling order: one process calls create() and passes descriptor() to the others, which call adopt().
// Threads: any. Failure: exhausted if the memory cannot be had now: later accesses cannot fail (H49,
//   docs/spec/hazards.md#h49).
class SharedMemory {
  public:
    // Zeroed.
    [[nodiscard]] static Result<SharedMemory> create(std::size_t bytes);
    // Refuses memory of another size, or memory that its owner may shrink.
    [[nodiscard]] static Result<SharedMemory> adopt(net::Descriptor descriptor, std::size_t bytes);
    ~SharedMemory();
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return bytes_; }
    [[nodiscard]] int descriptor() const { return descriptor_.number(); }

  private:
    SharedMemory(net::Descriptor descriptor, std::byte* data, std::size_t bytes)
        : descriptor_(std::move(descriptor)), data_(data), bytes_(bytes) {}
    [[nodiscard]] static Result<SharedMemory> map(net::Descriptor descriptor, std::size_t bytes);

    net::Descriptor descriptor_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace atp::shm
