// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp {

// Memory that several owners share. A part is *reserved* when an owner begins, so that the owner can always go on with
// it. The rest is *grown* as it is used, and may not be there. Growth takes at most half of the limit, and an eighth
// for one owner: otherwise owners that need much now would keep out later ones. Nor does it take what is *kept*.
//
// Calling order: one release() for each reserve(), and one shrink() for each grow(), that returned true.
// Threads: none.
// Failure: reserve() and grow() return false if there is no room, and then take nothing.
class MemoryBudget {
  public:
    static constexpr std::uint64_t shares_of_owners = 8;

    explicit MemoryBudget(std::uint64_t limit) : limit_(limit) {}

    [[nodiscard]] bool reserve(std::uint64_t bytes) {
        if (!fits(bytes)) return false;
        reserved_ += bytes;
        return true;
    }
    void release(std::uint64_t bytes) { reserved_ -= bytes; }
    // `held`: what this owner has grown by already.
    [[nodiscard]] bool grow(std::uint64_t bytes, std::uint64_t held) {
        const bool in_share = held + bytes <= limit_ / shares_of_owners && grown_ + bytes <= limit_ / 2;
        if (!in_share || !fits(bytes + kept_)) return false;
        grown_ += bytes;
        return true;
    }
    // For owners that will reserve it.
    void keep(std::uint64_t bytes) { kept_ = bytes; }
    void shrink(std::uint64_t bytes) { grown_ -= bytes; }

    [[nodiscard]] std::uint64_t limit() const { return limit_; }
    [[nodiscard]] std::uint64_t used() const { return reserved_ + grown_; }
    [[nodiscard]] bool fits(std::uint64_t bytes) const { return bytes <= limit_ && used() <= limit_ - bytes; }

    // What has grown belongs to owners, which restore themselves.
    template <class Archive>
    void persist(Archive& archive) {
        archive.value(reserved_);
    }

  private:
    std::uint64_t limit_;
    std::uint64_t reserved_ = 0;
    std::uint64_t grown_ = 0;
    std::uint64_t kept_ = 0;
};

}  // namespace atp
