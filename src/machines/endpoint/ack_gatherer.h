// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "control/branch.h"
#include "control/channel_key.h"
#include "protocol/switch.h"
#include "protocol/variant.h"
#include "wire/ack_list.h"
#include "wire/outbox.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

// Time that an ACK waits at most while its channel expects more.
inline constexpr Duration usual_ack_hold = std::chrono::microseconds(200);

// True if the packet is an ACK without lanes that may leave in a list: it goes to workers only, and no switch between
// here and them needs it to free an aggregator. The gradients of a fragment with one sender pass all aggregators. If
// those of a sum came to an aggregator of `table`, no switch before it has added them (docs/spec/packet.md#ack-lists).
// `table` has handled the packet.
[[nodiscard]] bool may_be_listed(const protocol::PacketBuffer& packet, const control::Branch& branch,
                                 const protocol::Switch& table);

struct AckGathererCounters {
    std::uint64_t acks = 0;    // that left in lists
    std::uint64_t lists = 0;   // of at least two ACKs
    std::uint64_t unsent = 0;  // copies without room in the outbox
};

// ACKs without lanes of all channels of a shard that wait for further ones to the same receiver.
//
// Ownership: owns the ACKs, at most 16 for each channel and receiver.
// Calling order: take() for each packet that goes down. transmit() if is_full(), at the end of each batch, at
//   poll_timeout(), and when a blocked outbox has room.
// Threads: none.
// Failure: add() returns false if the list of that receiver is full. Lists without room stay until the next call.
class AckGatherer {
  public:
    explicit AckGatherer(Duration hold) : hold_(hold) {}

    // True if the packet waits in a list now. False: it leaves by itself. `table` has handled it.
    [[nodiscard]] bool take(const protocol::PacketBuffer& packet, const control::Branch& branch,
                            const protocol::Switch& table, Time now);
    [[nodiscard]] bool is_full() const { return full_; }
    [[nodiscard]] bool empty() const { return waiting_.empty(); }

    // Parts of take(). add() is for an ACK that may_be_listed().
    [[nodiscard]] bool add(const control::Branch& branch, std::span<const std::byte> ack, Time now);
    // The lists of this channel leave with the next transmit().
    void hasten(const control::ChannelKey& key);
    // Drops the ACKs of a channel.
    void close(const control::ChannelKey& key);

    struct Channel {
        const control::Branch* branch = nullptr;  // nullptr: the channel has ended
        bool expects_more = false;                // further ACKs will follow soon
    };
    // Sends the lists that are full or due, and all lists of channels that expect no more. `channel_of(key)` returns a
    // Channel.
    template <class ChannelOf>
    void transmit(wire::Outbox& out, Time now, ChannelOf&& channel_of);

    [[nodiscard]] bool blocked() const { return blocked_; }  // the outbox had no room
    [[nodiscard]] Time poll_timeout() const;
    [[nodiscard]] const AckGathererCounters& counters() const { return counters_; }

    template <class Archive>
    void persist(Archive& archive);

  private:
    struct Waiting {
        control::ChannelKey key;
        std::uint16_t worker = ATP_WORKER_ALL;
        Time due{};
        std::unique_ptr<wire::AckList> acks;
    };

    [[nodiscard]] std::unique_ptr<wire::AckList> empty_list();
    [[nodiscard]] bool send(const Waiting& waiting, const control::Branch& branch, wire::Outbox& out);
    void remove(std::size_t at);

    Duration hold_;
    std::vector<Waiting> waiting_;                       // lists with at least one ACK
    std::vector<std::unique_ptr<wire::AckList>> spare_;  // empty lists
    bool full_ = false;                                  // a list takes no further ACK
    bool blocked_ = false;
    AckGathererCounters counters_;
};

template <class ChannelOf>
void AckGatherer::transmit(wire::Outbox& out, Time now, ChannelOf&& channel_of) {
    full_ = blocked_ = false;
    control::ChannelKey key{};
    Channel channel{};
    for (std::size_t at = 0; at < waiting_.size();) {
        const Waiting& waiting = waiting_[at];
        if (at == 0 || waiting.key != key) channel = channel_of(key = waiting.key);
        if (channel.branch != nullptr && channel.expects_more && now < waiting.due) {
            ++at;
        } else if (channel.branch == nullptr || send(waiting, *channel.branch, out)) {
            remove(at);
        } else {
            blocked_ = true;
            return;
        }
    }
}

template <class Archive>
void AckGatherer::persist(Archive& archive) {
    std::uint64_t lists = waiting_.size();
    archive.value(lists);
    while (waiting_.size() > lists) remove(waiting_.size() - 1);
    while (waiting_.size() < lists) waiting_.push_back({.key = {}, .acks = empty_list()});
    for (Waiting& waiting : waiting_) {
        archive.value(waiting.key.job), archive.value(waiting.key.token), archive.value(waiting.key.channel);
        archive.value(waiting.worker), archive.time(waiting.due);
        waiting.acks->persist(archive);
    }
    archive.value(full_), archive.value(blocked_);
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
