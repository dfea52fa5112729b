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

// A tournament of all events: each inner node of a binary tree names the earlier event of its two subtrees. After a
// leaf has changed, only the nodes above it are played again. They are known from the beginning, so the processor loads
// all of them at once, and none of the comparisons is a branch, which it could not predict.
class EventQueue {
  public:
    EventQueue() { grow(); }
    EventQueue(const EventQueue&) = delete;
    EventQueue& operator=(const EventQueue&) = delete;

    [[nodiscard]] bool empty() const { return free_.size() == leaves_.size(); }
    [[nodiscard]] const Event& top() const { return *earliest_[root]; }

    // Reserves the order of an event that is pushed later, such as a packet that waits in the queue of its link.
    [[nodiscard]] std::uint64_t next_order() { return order_++; }

    void push(Time time, Event::Kind kind, std::uint32_t target) {
        push(Event{.time = time, .order = next_order(), .kind = kind, .target = target});
    }

    void push(const Event& event) {
        if (free_.empty()) grow();
        Event* const leaf = free_.back();
        free_.pop_back();
        replace(leaf, event);
    }

    void pop() {
        free_.push_back(earliest_[root]);
        replace(earliest_[root], no_event);
    }

    // The same as pop() and then push(), but faster.
    void replace_top(const Event& event) { replace(earliest_[root], event); }

  private:
    static constexpr std::size_t root = 1;  // the children of node n are the nodes 2 n and 2 n + 1
    static constexpr std::size_t least_leaves = 64;
    static constexpr Event no_event{.time = never, .order = ~std::uint64_t{0}};

    __extension__ using Key = unsigned __int128;
    static Key key(const Event& event) {
        const auto since_start = static_cast<std::uint64_t>(event.time.time_since_epoch().count());
        return static_cast<Key>(since_start) << 64U | event.order;
    }

    void replace(Event* leaf, const Event& event) {
        *leaf = event;
        Event* earliest = leaf;
        Key earliest_key = key(event);
        Event** const nodes = earliest_.data();
        const auto index = static_cast<std::size_t>(leaf - leaves_.data());
        for (std::size_t node = first_leaf_ + index; node != root; node /= 2) {
            Event* const other = nodes[node ^ 1U];
            const Key other_key = key(*other);
            earliest = other_key < earliest_key ? other : earliest;
            earliest_key = std::min(earliest_key, other_key);
            nodes[node / 2] = earliest;
        }
    }

    // Called when all leaves are in use.
    void grow() {
        const std::size_t used = leaves_.size();
        leaves_.resize(std::max(2 * used, least_leaves), no_event);
        first_leaf_ = leaves_.size();
        earliest_.resize(2 * first_leaf_);
        for (std::size_t i = 0; i < first_leaf_; ++i) earliest_[first_leaf_ + i] = &leaves_[i];
        for (std::size_t node = first_leaf_; node-- > root;) {
            Event* const left = earliest_[2 * node];
            Event* const right = earliest_[2 * node + 1];
            earliest_[node] = key(*right) < key(*left) ? right : left;
        }
        for (std::size_t i = first_leaf_; i-- > used;) free_.push_back(&leaves_[i]);
    }

    std::vector<Event> leaves_;     // no_event: free
    std::vector<Event*> earliest_;  // by node, the leaves included
    std::size_t first_leaf_ = 0;    // its node
    std::vector<Event*> free_;
    std::uint64_t order_ = 0;
};

}  // namespace atp::sim
