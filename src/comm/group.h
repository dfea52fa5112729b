// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "protocol/tensor.h"

namespace atp::comm {

// Several tensors as one: their lanes follow each other without a gap, so small ones share packets.
class Group final : public protocol::Tensor {
  public:
    // At least one, all plain or none.
    explicit Group(std::vector<std::unique_ptr<protocol::Tensor>> members) : members_(std::move(members)) {
        for (const auto& member : members_) {
            starts_.push_back(size_);
            size_ += member->size();
        }
    }

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] bool plain() const override { return members_.front()->plain(); }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        bool fits = true;
        visit(first, lanes, [&](protocol::Tensor& member, std::uint64_t at, std::span<std::byte> part) {
            fits = member.load_integers(at, part) && fits;
        });
        return fits;
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        visit(first, lanes, [](protocol::Tensor& member, std::uint64_t at, std::span<std::byte> part) {
            member.load_floats(at, part);
        });
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        visit(first, lanes, [](protocol::Tensor& member, std::uint64_t at, std::span<const std::byte> part) {
            member.store(at, part);
        });
    }

  private:
    // Calls for each member's share of the lanes.
    template <class Bytes, class Call>
    void visit(std::uint64_t first, Bytes lanes, Call call) const {
        auto at = static_cast<std::size_t>(std::ranges::upper_bound(starts_, first) - starts_.begin()) - 1;
        while (!lanes.empty()) {
            const std::uint64_t offset = first - starts_[at];
            const std::uint64_t left = members_[at]->size() - offset;
            const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left, lanes.size() / 4));
            if (count != 0) call(*members_[at], offset, lanes.first(count * 4));
            lanes = lanes.subspan(count * 4);
            first += count;
            ++at;
        }
    }

    std::vector<std::unique_ptr<protocol::Tensor>> members_;
    std::vector<std::uint64_t> starts_;
    std::uint64_t size_ = 0;
};

}  // namespace atp::comm
