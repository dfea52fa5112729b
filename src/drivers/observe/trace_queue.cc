// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "wire/control.h"
#include "wire/format.h"

namespace atp::observe {

TraceQueue::TraceQueue(std::string local, std::size_t bytes)
    : local_(std::move(local)),
      bytes_(std::bit_ceil(std::max(bytes, 2 * alignment))),
      ring_(std::make_unique_for_overwrite<std::byte[]>(bytes_)) {
    static_assert(std::is_trivially_copyable_v<Record>);
}

// Events are contiguous: one that does not fit in front of the end begins at the begin.
std::byte* TraceQueue::reserve(std::size_t size) {
    std::uint64_t written = written_.load(std::memory_order_relaxed);
    const std::size_t at = written & (bytes_ - 1);
    const std::size_t skipped = at + size > bytes_ ? bytes_ - at : 0;
    const auto lacks_room = [&] { return written + skipped + size - known_taken_ > bytes_; };
    if (lacks_room()) known_taken_ = taken_.load(std::memory_order_acquire);
    if (lacks_room()) return nullptr;
    if (skipped != 0) {
        constexpr std::uint32_t none = 0;
        std::memcpy(ring_.get() + at, &none, sizeof none);
        written += skipped;
        written_.store(written, std::memory_order_release);
    }
    return ring_.get() + (written & (bytes_ - 1));
}

void TraceQueue::packet(Time now, std::string_view what, std::span<const std::byte> bytes, const wire::Address* peer,
                        bool arrived) {
    const std::size_t copied =
        wire::control_type(bytes) ? bytes.size() : std::min<std::size_t>(bytes.size(), ATP_HEADER_BYTES);
    const std::size_t size = (sizeof(Record) + copied + alignment - 1) / alignment * alignment;
    std::byte* const at = size <= bytes_ ? reserve(size) : nullptr;
    if (at == nullptr) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const Record record{.size = static_cast<std::uint32_t>(size),
                        .datagram_bytes = static_cast<std::uint32_t>(bytes.size()),
                        .copied_bytes = static_cast<std::uint32_t>(copied),
                        .what_bytes = static_cast<std::uint16_t>(what.size()),
                        .arrived = arrived,
                        .time = now,
                        .what = what.data(),
                        .peer = peer != nullptr ? *peer : wire::Address()};
    std::memcpy(at, &record, sizeof record);
    std::memcpy(at + sizeof record, bytes.data(), copied);
    written_.store(written_.load(std::memory_order_relaxed) + size, std::memory_order_release);
}

bool TraceQueue::take(Event& event) {
    taken_.store(returned_, std::memory_order_release);
    for (;;) {
        if (returned_ == written_.load(std::memory_order_acquire)) return false;
        const std::byte* const at = ring_.get() + (returned_ & (bytes_ - 1));
        std::uint32_t size = 0;
        std::memcpy(&size, at, sizeof size);
        if (size == 0) {
            returned_ += bytes_ - (returned_ & (bytes_ - 1));
            continue;
        }
        Record record;
        std::memcpy(&record, at, sizeof record);
        returned_ += size;
        event = {.time = record.time,
                 .what = {record.what, record.what_bytes},
                 .peer = record.peer,
                 .arrived = record.arrived,
                 .datagram_bytes = record.datagram_bytes,
                 .copied = {at + sizeof record, record.copied_bytes}};
        return true;
    }
}

}  // namespace atp::observe
