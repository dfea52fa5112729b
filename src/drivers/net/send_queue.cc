// SPDX-License-Identifier: Apache-2.0
#include "net/send_queue.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace atp::net {

SendQueue::SendQueue(std::uint32_t arena_bytes, std::uint32_t packets)
    : arena_bytes_(arena_bytes),
      arena_(allocate_aligned(arena_bytes)),
      packet_limit_(packets),
      slots_(std::bit_ceil(std::size_t{packets} * 2)),
      parts_(packets) {
    packets_.reserve(packets);
    runs_.reserve(packets);
}

std::span<std::byte> SendQueue::reserve(std::size_t max_bytes) {
    reserved_ = 0;
    if (packets_.size() == packet_limit_ || max_bytes > arena_bytes_ - used_) return {};
    reserved_ = static_cast<std::uint32_t>(max_bytes);
    return {arena_.get() + used_, max_bytes};
}

void SendQueue::commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) {
    assert(bytes <= reserved_ && packets_.size() < packet_limit_);
    const auto size = static_cast<std::uint32_t>(bytes);
    const bool appended = append({arena_.get() + used_, size, none, ecn, false}, to);
    assert(appended);
    static_cast<void>(appended);
    used_ += size;
    reserved_ = 0;
}

bool SendQueue::repeat(const wire::Address& to) {
    assert(!packets_.empty());
    QueuedPacket packet = packets_.back();
    packet.next = none;
    return append(packet, to);
}

bool SendQueue::borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    return append({bytes.data(), static_cast<std::uint32_t>(bytes.size()), none, ecn, true}, to);
}

bool SendQueue::append(const QueuedPacket& packet, const wire::Address& to) {
    if (packets_.size() == packet_limit_) return false;
    const auto index = static_cast<std::uint32_t>(packets_.size());
    packets_.push_back(packet);
    Run& run = runs_[run_of(to)];
    if (run.first == none) {
        run.first = index;
    } else {
        packets_[run.last].next = index;
    }
    run.last = index;
    ++waiting_;
    borrowed_ += packet.borrowed ? 1 : 0;
    return true;
}

std::uint32_t SendQueue::run_of(const wire::Address& to) {
    if (last_run_ < runs_.size() && runs_[last_run_].to == to) return last_run_;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = to.hash() & mask;
    // The table has at least twice as many slots as packets, so one is always empty.
    while (slots_[at].round == round_ && runs_[slots_[at].run].to != to) {
        at = (at + 1) & mask;
    }
    if (slots_[at].round != round_) {
        slots_[at] = {round_, static_cast<std::uint32_t>(runs_.size())};
        runs_.push_back({to, none, none});
    }
    last_run_ = slots_[at].run;
    // This run may be before front_, if its packets were sent while others waited. plan() must then find it again.
    front_ = std::min(front_, last_run_);
    return last_run_;
}

std::size_t SendQueue::plan(std::span<Message> messages, const MessageLimits& limits) {
    while (front_ < runs_.size() && runs_[front_].first == none) ++front_;
    std::size_t count = 0;
    std::uint32_t parts = 0;
    for (std::uint32_t run = front_; run < runs_.size(); ++run) {
        std::uint32_t next = runs_[run].first;
        while (next != none) {
            if (count == messages.size()) return count;
            Message& message = messages[count++];
            message.parts = {parts_.data() + parts, 0};
            next = fill(message, run, next, limits);
            parts += static_cast<std::uint32_t>(message.parts.size());
        }
    }
    return count;
}

// The kernel cuts a message into datagrams of equal length, of which the last may be shorter. The first packet is
// accepted even beyond the limits. An empty datagram cannot be cut from a buffer, so it is a message of its own.
bool SendQueue::joins(const QueuedPacket& packet, const Message& message, const MessageLimits& limits) {
    if (message.packets == 0) return true;
    const bool uncut = message.bytes == message.packets * message.packet_bytes;
    return uncut && packet.bytes != 0 && packet.bytes <= message.packet_bytes && packet.ecn == message.ecn &&
           message.packets < limits.packets && message.bytes + packet.bytes <= limits.bytes;
}

std::uint32_t SendQueue::fill(Message& message, std::uint32_t run, std::uint32_t first, const MessageLimits& limits) {
    message = {.to = &runs_[run].to,
               .ecn = packets_[first].ecn,
               .packets = 0,
               .packet_bytes = packets_[first].bytes,
               .bytes = 0,
               .parts = message.parts,
               .run = run,
               .rest = first};
    iovec* const parts = message.parts.data();
    std::size_t count = 0;
    while (message.rest != none && joins(packets_[message.rest], message, limits)) {
        const QueuedPacket& packet = packets_[message.rest];
        iovec* const last = count == 0 ? nullptr : parts + (count - 1);
        if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == packet.data) {
            last->iov_len += packet.bytes;
        } else {
            parts[count++] = {const_cast<std::byte*>(packet.data), packet.bytes};  // sendmsg() only reads it
        }
        ++message.packets;
        message.bytes += packet.bytes;
        message.rest = packet.next;
    }
    message.parts = {parts, count};
    return message.rest;
}

void SendQueue::sent(const Message& message) {
    runs_[message.run].first = message.rest;
    waiting_ -= message.packets;
}

std::uint32_t SendQueue::settle() {
    reserved_ = 0;
    if (waiting_ == 0) {
        clear();
        return 0;
    }
    if (borrowed_ == 0) return 0;
    borrowed_ = 0;
    std::uint32_t dropped = 0;
    for (std::uint32_t run = front_; run < runs_.size(); ++run) {
        dropped += adopt(runs_[run]);
    }
    waiting_ -= dropped;
    if (waiting_ == 0) clear();
    return dropped;
}

// Moves the borrowed packets of a run into the arena, drops those that do not fit, and returns how many.
std::uint32_t SendQueue::adopt(Run& run) {
    std::uint32_t dropped = 0;
    std::uint32_t kept = none;
    const std::uint32_t first = std::exchange(run.first, none);
    for (std::uint32_t at = first; at != none; at = packets_[at].next) {
        QueuedPacket& packet = packets_[at];
        if (packet.borrowed) {
            if (packet.bytes > arena_bytes_ - used_) {
                ++dropped;
                continue;
            }
            if (packet.bytes != 0) std::memcpy(arena_.get() + used_, packet.data, packet.bytes);
            packet.data = arena_.get() + used_;
            packet.borrowed = false;
            used_ += packet.bytes;
        }
        (kept == none ? run.first : packets_[kept].next) = at;
        kept = at;
    }
    if (kept != none) packets_[kept].next = none;
    run.last = kept;
    return dropped;
}

void SendQueue::clear() {
    packets_.clear();
    runs_.clear();
    used_ = 0;
    front_ = 0;
    last_run_ = 0;
    borrowed_ = 0;
    if (++round_ == 0) {  // slots of 2^32 rounds ago would count as current
        std::fill(slots_.begin(), slots_.end(), TableEntry{});
        round_ = 1;
    }
}

}  // namespace atp::net
