// SPDX-License-Identifier: Apache-2.0
// A first-in, first-out queue of fixed capacity, which the constructor allocates and does not touch: a long queue that
// stays short costs little. front() and pop() require an item.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/pages.h"

namespace atp {

template <class T>
class Ring {
  public:
    explicit Ring(std::size_t capacity) : capacity_(capacity), items_(claim_pages<T>(capacity)) {}

    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] bool full() const { return size_ == capacity_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const T& front() const { return items_[head_]; }

    // False if the queue is full; the item is then not stored.
    [[nodiscard]] bool push(const T& item) {
        if (full()) return false;
        std::construct_at(&items_[position(size_)], item);
        ++size_;
        return true;
    }
    void pop() {
        head_ = position(1);
        --size_;
    }
    void clear() { head_ = size_ = 0; }

    // Requires T::persist(). The saved bytes do not depend on the position of the items in the ring.
    template <class Archive>
    void persist(Archive& archive) {
        std::uint64_t size = size_;
        archive.value(size);
        if (size != size_) {
            size_ = std::min(static_cast<std::size_t>(size), capacity_);  // an archive may contain any number
            head_ = 0;
            for (std::size_t i = 0; i < size_; ++i) std::construct_at(&items_[i]);
        }
        for (std::size_t i = 0; i < size_; ++i) items_[position(i)].persist(archive);
    }

  private:
    // Index of the item that is `ahead` of the first one. A division would cost more than the rest of a call.
    [[nodiscard]] std::size_t position(std::size_t ahead) const {
        const std::size_t index = head_ + ahead;
        return index < capacity_ ? index : index - capacity_;
    }

    std::size_t capacity_;
    Pages<T> items_;
    std::size_t head_ = 0;
    std::size_t size_ = 0;
};

}  // namespace atp
