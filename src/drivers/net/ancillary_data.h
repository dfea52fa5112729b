// SPDX-License-Identifier: Apache-2.0
// Writes and reads the control messages of sendmsg() and recvmsg(). The caller owns the buffers.
#pragma once

#include <sys/socket.h>

#include <cassert>
#include <cstddef>
#include <cstring>

namespace atp::net {

// Appends control messages to a header.
//
// Ownership: borrows the header and the buffer that its msg_control and msg_controllen describe.
// Calling order: add() for each message, then finish(). Threads: none. Failure: none; the buffer must be large enough.
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
        // CMSG_NXTHDR would read the length of the next message, which is not written yet.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
        next_ = reinterpret_cast<cmsghdr*>(static_cast<std::byte*>(header_.msg_control) + used_);
    }
    // Sets the length in the header to the messages added, which may be none.
    void finish() {
        header_.msg_controllen = used_;
        if (used_ == 0) header_.msg_control = nullptr;
    }

  private:
    msghdr& header_;
    cmsghdr* next_;
    std::size_t used_ = 0;
};

// The value of one received control message. as<T>() extends it with zeros if the kernel wrote fewer bytes than T has.
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

// Calls `visit(level, type, value)` for each control message received; `value` is a ControlValue.
template <class Visit>
void for_each_control(const msghdr& header, Visit&& visit) {
    msghdr& mutable_header = const_cast<msghdr&>(header);  // CMSG_NXTHDR takes no const, but only reads
    for (cmsghdr* at = CMSG_FIRSTHDR(&mutable_header); at != nullptr; at = CMSG_NXTHDR(&mutable_header, at)) {
        visit(at->cmsg_level, at->cmsg_type, ControlValue(*at));
    }
}

}  // namespace atp::net
