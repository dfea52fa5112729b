// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "wire/trace.h"

namespace atp::observe {

// Copies of packets of one thread, on their way to the thread that writes a trace file. A packet is copied up to its
// lanes, a control message as a whole.
//
// Ownership: owns a ring of bytes, allocated at construction.
// Calling order: packet() any number of times on one thread; take() any number of times on another one.
// Threads: two, without a lock.
// Failure: if the ring is full, packet() drops the event and counts it.
class TraceQueue final : public wire::TraceSink {
  public:
    // `local`: this node, as the trace names it. `bytes` is rounded up to a power of two.
    TraceQueue(std::string local, std::size_t bytes);

    void packet(Time now, std::string_view what, std::span<const std::byte> bytes, const wire::Address* peer,
                bool arrived) override;

    struct Event {
        Time time{};
        std::string_view what{};
        wire::Address peer{};  // of no family: the event happened at this node
        bool arrived = false;
        std::size_t datagram_bytes = 0;       // of the whole datagram
        std::span<const std::byte> copied{};  // its beginning; valid until the next take()
    };
    // False: nothing is queued.
    [[nodiscard]] bool take(Event& event);
    [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
    [[nodiscard]] const std::string& local() const { return local_; }

  private:
    // In front of the copied bytes. `size` includes both, in whole units of `alignment`; 0: the rest of the ring is
    // unused, and the next event is at its begin.
    struct Record {
        std::uint32_t size = 0;
        std::uint32_t datagram_bytes = 0;
        std::uint32_t copied_bytes = 0;
        std::uint16_t what_bytes = 0;
        bool arrived = false;
        Time time{};
        const char* what = nullptr;
        wire::Address peer{};
    };
    static constexpr std::size_t alignment = 64;

    [[nodiscard]] std::byte* reserve(std::size_t size);

    std::string local_;
    std::size_t bytes_;                                         // of ring_: a power of two
    std::unique_ptr<std::byte[]> ring_;                         // its memory is claimed as it is used
    alignas(alignment) std::atomic<std::uint64_t> written_{0};  // bytes since the begin; only the sender stores it
    std::atomic<std::uint64_t> dropped_{0};
    std::uint64_t known_taken_ = 0;                           // of the sender: taken_ as last read
    alignas(alignment) std::atomic<std::uint64_t> taken_{0};  // only the writer of the file stores it
    std::uint64_t returned_ = 0;  // of the writer: end of the event that the last take() returned
};

}  // namespace atp::observe
