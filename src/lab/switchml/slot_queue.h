// SPDX-License-Identifier: Apache-2.0
// A first-in first-out queue of slot numbers. It holds each slot at most once. Removing any slot takes constant time.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <vector>

namespace atp::switchml {

class SlotQueue {
  public:
    explicit SlotQueue(std::uint32_t slots) : links_(slots + 1), end_(slots) { clear(); }

    [[nodiscard]] bool empty() const { return links_[end_].next == end_; }
    [[nodiscard]] bool contains(std::uint32_t slot) const { return links_[slot].next != nowhere; }
    [[nodiscard]] std::uint32_t front() const { return links_[end_].next; }

    // The first slot for which `holds(slot)` is true.
    template <class Condition>
    [[nodiscard]] std::optional<std::uint32_t> find(Condition&& holds) const {
        for (std::uint32_t slot = front(); slot != end_; slot = links_[slot].next) {
            if (holds(slot)) return slot;
        }
        return std::nullopt;
    }

    void push(std::uint32_t slot) {
        assert(slot < end_ && !contains(slot));
        const std::uint32_t last = links_[end_].previous;
        links_[slot] = {.next = end_, .previous = last};
        links_[last].next = links_[end_].previous = slot;
    }
    // Returns false if the slot was not queued.
    bool remove(std::uint32_t slot) {
        if (!contains(slot)) return false;
        const Link link = links_[slot];
        links_[link.previous].next = link.next;
        links_[link.next].previous = link.previous;
        links_[slot] = {};
        return true;
    }
    void clear() {
        for (Link& link : links_) link = {};
        links_[end_] = {.next = end_, .previous = end_};
    }

    template <class Archive>
    void persist(Archive& archive) {
        std::vector<std::uint32_t> order;
        for (std::uint32_t slot = front(); slot != end_; slot = links_[slot].next) order.push_back(slot);
        std::uint64_t size = order.size();
        archive.value(size);
        order.resize(static_cast<std::size_t>(size));
        clear();
        for (std::uint32_t& slot : order) {
            archive.value(slot);
            push(slot);
        }
    }

  private:
    static constexpr std::uint32_t nowhere = 0xffffffffU;
    struct Link {
        std::uint32_t next = nowhere;
        std::uint32_t previous = nowhere;
    };

    std::vector<Link> links_;  // circular list; the last element is the anchor and no slot
    std::uint32_t end_;
};

}  // namespace atp::switchml
