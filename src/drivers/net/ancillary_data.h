// SPDX-License-Identifier: Apache-2.0
// Writing and reading the control messages of sendmsg() and recvmsg(). The buffers are the caller's.
#pragma once

#include <sys/socket.h>

#include <cassert>
#include <cstddef>
#include <cstring>

namespace atp::net {

// Appends control messages to a header whose msg_control and msg_controllen give the room.
class ControlWriter {
  public:
    explicit ControlWriter(msghdr& header) : header_(header), next_(CMSG_FIRSTHDR(&header)) {}

    template <class Value>
    void add(int level, int type, const Value& value) {
        assert(used_ + CMSG_SPACE(sizeof value) <= header_.msg_controllen);
        next_->cmsg_level = level;
        next_->cmsg_type = type;
        next_->cmsg_len = CMSG_LEN(sizeof value);
        std::memcpy(CMSG_DATA(next_), &value, sizeof value);
        used_ += CMSG_SPACE(sizeof value);
        // CMSG_NXTHDR would look at the length of the message that is not there yet.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
        next_ = reinterpret_cast<cmsghdr*>(static_cast<std::byte*>(header_.msg_control) + used_);
    }
    // Cuts the header to what was added; to none where that is nothing.
    void finish() {
        header_.msg_controllen = used_;
        if (used_ == 0) header_.msg_control = nullptr;
    }

  private:
    msghdr& header_;
    cmsghdr* next_;
    std::size_t used_ = 0;
};

// Calls `visit(level, type, read)` for each control message received, where read.as<T>() is its value, zero-extended
// where the kernel wrote fewer bytes than a T has.
class ControlValue {
  public:
    explicit ControlValue(const cmsghdr& message) : message_(message) {}

    template <class Value>
    [[nodiscard]] Value as() const {
        Value value{};
        const std::size_t there = message_.cmsg_len - CMSG_LEN(0);
        std::memcpy(&value, CMSG_DATA(&message_), there < sizeof value ? there : sizeof value);
        return value;
    }

  private:
    const cmsghdr& message_;
};

template <class Visit>
void for_each_control(const msghdr& header, Visit&& visit) {
    msghdr& mutable_header = const_cast<msghdr&>(header);  // CMSG_NXTHDR takes no const; it only reads
    for (cmsghdr* at = CMSG_FIRSTHDR(&mutable_header); at != nullptr; at = CMSG_NXTHDR(&mutable_header, at)) {
        visit(at->cmsg_level, at->cmsg_type, ControlValue(*at));
    }
}

}  // namespace atp::net
