// SPDX-License-Identifier: Apache-2.0
// Pending events in virtual time. Events of the same time occur in the order in which they were scheduled. A run is
// therefore a function of its inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "sim/ids.h"

namespace atp::sim {

struct Event {
    enum class Kind : std::uint16_t {
        path,     // target: a path of a link, whose first packet arrives
        loose,    // target: a packet that arrives out of order
        wake,     // target: chosen by the program
        fault,    // target: an entry of the fault schedule
        restart,  // target: an entry of the fault schedule whose outage ends
        sample,   // the sampler reads the counters
    };
    Time time;
    std::uint64_t order = 0;
    Kind kind = Kind::path;
    ProgramId program = 0;
    std::uint32_t target = 0;
};
static_assert(sizeof(Event) == 24);

// A heap with four children per node: half the levels of a binary heap; the children share one or two cache lines.
class EventQueue {
  public:
    [[nodiscard]] bool empty() const { return heap_.empty(); }
    [[nodiscard]] const Event& top() const { return heap_.front(); }
    [[nodiscard]] std::size_t size() const { return heap_.size(); }

    // Reserves the order of an event that is pushed later, such as a packet that waits in the queue of its link.
    [[nodiscard]] std::uint64_t next_order() { return order_++; }

    void push(Time time, Event::Kind kind, std::uint32_t target) {
        push(Event{.time = time, .order = next_order(), .kind = kind, .target = target});
    }

    void push(const Event& event) {
        heap_.push_back(event);
        std::size_t at = heap_.size() - 1;
        while (at != 0 && earlier(event, heap_[(at - 1) / arity])) {
            heap_[at] = heap_[(at - 1) / arity];
            at = (at - 1) / arity;
        }
        heap_[at] = event;
    }

    void pop() {
        const Event last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) replace_top(last);
    }

    // The same as pop() and then push(), but faster.
    void replace_top(const Event& event) {
        const Key event_key = key(event);
        std::size_t at = 0;
        while (true) {
            const std::size_t first = at * arity + 1;
            if (first >= heap_.size()) break;
            const std::size_t last = std::min(first + arity, heap_.size());
            std::size_t earliest = first;
            Key earliest_key = key(heap_[first]);
            for (std::size_t child = first + 1; child < last; ++child) {
                const Key child_key = key(heap_[child]);
                earliest = child_key < earliest_key ? child : earliest;
                earliest_key = std::min(earliest_key, child_key);
            }
            if (earliest_key >= event_key) break;
            heap_[at] = heap_[earliest];
            at = earliest;
        }
        heap_[at] = event;
    }

  private:
    static constexpr std::size_t arity = 4;
    // The earliest child is unpredictable: one wide comparison costs less than mispredicted branches.
    __extension__ using Key = unsigned __int128;
    static Key key(const Event& event) {
        const auto since_start = static_cast<std::uint64_t>(event.time.time_since_epoch().count());
        return static_cast<Key>(since_start) << 64U | event.order;
    }
    static bool earlier(const Event& a, const Event& b) { return key(a) < key(b); }

    std::vector<Event> heap_;
    std::uint64_t order_ = 0;
};

}  // namespace atp::sim
