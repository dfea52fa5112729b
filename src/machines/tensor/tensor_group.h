// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "protocol/tensor.h"

namespace atp::tensor {

// Several tensors as one. Their lanes follow each other without a gap, so small tensors share packets.
//
// Ownership: owns the members. Calling order: that of protocol::Tensor. Threads: as the members. Failure: none.
class TensorGroup final : public protocol::Tensor {
  public:
    // Requires at least one member. Either all members are plain or none is.
    explicit TensorGroup(std::vector<std::unique_ptr<protocol::Tensor>> members) : members_(std::move(members)) {
        for (const auto& member : members_) {
            starts_.push_back(size_);
            size_ += member->size();
        }
    }

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] bool plain() const override { return members_.front()->plain(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        bool all = true;
        visit(first, count, [&](const protocol::Tensor& member, std::uint64_t at, std::uint64_t part) {
            all = all && member.ready(at, part);
        });
        return all;
    }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        bool fits = true;
        visit_lanes(first, lanes, [&](protocol::Tensor& member, std::uint64_t at, std::span<std::byte> part) {
            fits = member.load_integers(at, part) && fits;
        });
        return fits;
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        visit_lanes(first, lanes, [](protocol::Tensor& member, std::uint64_t at, std::span<std::byte> part) {
            member.load_floats(at, part);
        });
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        visit_lanes(first, lanes, [](protocol::Tensor& member, std::uint64_t at, std::span<const std::byte> part) {
            member.store(at, part);
        });
    }

  private:
    // Calls `call(member, offset, count)` for each member's part of the range.
    template <class Call>
    void visit(std::uint64_t first, std::uint64_t count, Call call) const {
        auto at = static_cast<std::size_t>(std::ranges::upper_bound(starts_, first) - starts_.begin()) - 1;
        for (; count != 0; ++at) {
            const std::uint64_t offset = first - starts_[at];
            const std::uint64_t part = std::min(members_[at]->size() - offset, count);
            if (part != 0) call(*members_[at], offset, part);
            first += part;
            count -= part;
        }
    }
    // Calls `call(member, offset, lanes)` for each member's part of the range.
    template <class Lanes, class Call>
    void visit_lanes(std::uint64_t first, Lanes lanes, Call call) const {
        visit(first, lanes.size() / ATP_LANE_BYTES,
              [&](protocol::Tensor& member, std::uint64_t at, std::uint64_t part) {
                  const std::size_t bytes = static_cast<std::size_t>(part) * ATP_LANE_BYTES;
                  call(member, at, lanes.first(bytes));
                  lanes = lanes.subspan(bytes);
              });
    }

    std::vector<std::unique_ptr<protocol::Tensor>> members_;
    std::vector<std::uint64_t> starts_;  // first element of each member
    std::uint64_t size_ = 0;             // elements of all members
};

}  // namespace atp::tensor
