// SPDX-License-Identifier: Apache-2.0
// Shards of switches and workers as machines, connected by a queue of datagrams: no socket, no thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/gatekeeper.h"
#include "endpoint/hosted_server.h"
#include "endpoint/shard_machine.h"
#include "protocol/worker.h"
#include "support/control_messages.h"
#include "support/integer_tensor.h"
#include "support/owned_tensor.h"
#include "support/recording_outbox.h"

namespace atp::endpoint {
using testing::encoded;
using testing::RecordingOutbox;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t job = 7;
inline constexpr std::uint32_t token = 0x5eed;
inline constexpr std::uint16_t channel = 3;

inline wire::Address host(unsigned number) {
    return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4791");
}
inline wire::Address worker_address(unsigned rank) { return host(100 + rank); }

inline wire::ChannelTerms terms_of(std::uint32_t mask1) {
    wire::ChannelTerms terms;
    terms.job = job, terms.token = token, terms.channel = channel;
    terms.lanes = 4, terms.window_log2 = 3, terms.aggregators = 64, terms.mask1 = mask1, terms.scale = 1e6;
    return terms;
}

// JOIN of one rank, whose unit has `size` members.
inline wire::Join join_of(const protocol::Place& place, std::uint16_t rank, bool direct = false) {
    wire::Join join;
    join.terms = terms_of(place.mask1);
    join.level = direct ? 1 : 0;
    join.units = {
        {.unit = place.unit, .members = 1U << place.member, .mask0 = place.mask0, .direct = direct, .ranks = {rank}}};
    return join;
}

inline ShardMachineConfig shard_config(const wire::Address& parent = {}) {
    return {.table = {.aggregators = 64, .lanes = 4, .jobs = 4},
            .tree = {.parent = parent, .jobs = 4, .channels = 8, .groups = *control::parse_ranges("239.192.0.0/16")}};
}

// A shard, its outbox and its events.
struct Shard {
    explicit Shard(const ShardMachineConfig& config = shard_config()) : machine(config) {}

    // A JOIN without an epoch becomes the newest, with the cookie of its address. A LEAVE without one becomes the
    // newest.
    [[nodiscard]] Bytes stamped(const Bytes& bytes, const wire::Address& from, Time now) {
        if (auto join = wire::decode<wire::Join>(bytes); join && join->epoch == 0) {
            join->epoch = ++epoch_;
            join->cookie = control::Gatekeeper(machine.tree().config().secret)
                               .cookie_of(control::Gatekeeper::Question::join, from, now);
            return encoded(*join, wire::least_question_bytes);
        }
        if (auto leave = wire::decode<wire::Leave>(bytes); leave && leave->epoch == 0) {
            leave->epoch = ++epoch_;
            return encoded(*leave);
        }
        return bytes;
    }
    // One datagram, as the driver hands it over. What it sends is in `sent`.
    void take(const Bytes& datagram_bytes, const wire::Address& from, Time now = {},
              wire::Ecn ecn = wire::Ecn::capable_0) {
        Bytes bytes = stamped(datagram_bytes, from, now);
        const std::size_t size = bytes.size();
        const wire::Datagram datagram{
            .bytes = std::span(bytes).first(size), .capacity = size, .from = &from, .ecn = ecn};
        machine.handle_batch({&datagram, 1}, outbox, now);
        collect();
    }
    void message(const Bytes& bytes, const wire::Address& from, Time now = {}) {
        Bytes whole = stamped(bytes, from, now);
        const std::size_t length = whole.size();
        machine.handle_message({.from = from, .bytes = std::move(whole), .length = length}, outbox, now);
        collect();
    }
    // Of the JOINs to the parent of its only channel.
    [[nodiscard]] std::uint64_t up_nonce() const {
        std::uint64_t nonce = 0;
        machine.tree().for_each([&](const control::Branch& branch) { nonce = branch.up_nonce; });
        return nonce;
    }
    void collect() {
        while (auto event = machine.poll_event()) events.push_back(*std::move(event));
        sent = outbox.flush();
    }
    template <class Message, class Decode>
    [[nodiscard]] std::optional<Message> last(Decode decode, const wire::Address& to) const {
        std::optional<Message> found;
        for (const RecordingOutbox::Packet& packet : sent) {
            if (packet.to != to) continue;
            if (auto message = decode(packet.bytes)) found = *std::move(message);
        }
        return found;
    }
    [[nodiscard]] std::vector<wire::Address> receivers(atp_type type) const {
        std::vector<wire::Address> to;
        for (const RecordingOutbox::Packet& packet : sent) {
            if (is_packet(packet.bytes, type)) to.push_back(packet.to);
        }
        return to;
    }
    [[nodiscard]] const protocol::SwitchCounters& packets() const { return machine.table().counters(); }
    static bool is_packet(std::span<const std::byte> bytes, atp_type type) {
        return bytes.size() >= ATP_HEADER_BYTES && wire::load_u8(bytes.data()) == ATP_VERSION &&
               wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) == type;
    }

    ShardMachine machine;
    RecordingOutbox outbox;
    std::vector<RecordingOutbox::Packet> sent;  // by the last call
    std::vector<ShardEvent> events;

  private:
    std::uint32_t epoch_ = 0;  // of the last JOIN or LEAVE
};

// A job of integers over shards. Datagrams go to the machine at their address, in order.
class Cluster {
  public:
    explicit Cluster(protocol::Membership membership) : membership_(std::move(membership)) {}

    Shard& add_shard(unsigned number, const ShardMachineConfig& config) {
        return *(shards_[host(number)] = std::make_unique<Shard>(config));
    }
    // A rank that joins at this switch. `level` 1: directly, or in a rack whose switch is in the path.
    void add_worker(std::uint16_t rank, unsigned at, std::uint8_t level = 0) {
        Rank& added = ranks_.emplace_back();
        added.at = host(at);
        added.join = join_of(membership_.place(rank), rank, membership_.unit(membership_.place(rank).unit).direct);
        added.join.level = level;
        added.join.terms.lanes = lanes;
        added.join.terms.window_log2 = window_log2;
        protocol::WorkerConfig config;
        config.channel = channel_config(added.join.terms);
        config.rank = rank;
        config.place = membership_.place(rank);
        config.senders = protocol::SenderMasks(membership_, rank);
        added.machine = std::make_unique<protocol::Worker>(config);
    }
    // All ranks join, until no message is in flight.
    void join_all() {
        for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
            put(encoded(ranks_[rank].join), worker_address(rank), ranks_[rank].at);
        }
        for (int round = 0; round < 4; ++round) {
            run();
            now += std::chrono::milliseconds(50);
            for (auto& [address, shard] : shards_) {
                shard->machine.handle_timeout(shard->outbox, now);
                take_from(address, *shard);
            }
        }
        run();
    }
    void submit(std::size_t elements) {
        for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
            Rank& at = ranks_[rank];
            at.input.clear();
            for (std::size_t i = 0; i < elements; ++i) {
                at.input.push_back(1000 * (rank + 1) + static_cast<std::int32_t>(i));
            }
            at.output.assign(elements, 0);
            at.tensor = std::make_unique<testing::IntegerTensor>(at.input, at.output);
            ASSERT_TRUE(at.machine->submit(*at.tensor, now));
        }
    }
    // A reduce-scatter or an all-gather of this many fragments.
    void submit_owned(bool one_sender, std::size_t fragments) {
        const testing::OwnedTensor::Form form{
            .workers = membership_.workers(), .fragment = lanes, .one_sender = one_sender};
        for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
            std::vector<std::int32_t> input(fragments * lanes);
            for (std::size_t i = 0; i < input.size(); ++i) input[i] = owned_input(rank, i);
            ranks_[rank].owned = std::make_unique<testing::OwnedTensor>(form, std::move(input));
            ASSERT_TRUE(ranks_[rank].machine->submit(*ranks_[rank].owned, now));
        }
    }
    [[nodiscard]] bool owned_results_are_right(bool one_sender) const {
        for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
            const testing::OwnedTensor& own = *ranks_[rank].owned;
            for (std::size_t i = 0; i < own.size(); ++i) {
                const std::uint16_t owner = own.owner_at(i);
                if ((owner == rank) == one_sender) continue;
                std::int32_t expected = 0;
                for (std::uint16_t from = 0; from < ranks_.size(); ++from) {
                    if (!one_sender || from == owner) expected += owned_input(from, i);
                }
                if (own.output()[i] != expected) return false;
            }
        }
        return !ranks_.empty();
    }
    // Until every rank is done; timers expire while no datagram is in flight.
    [[nodiscard]] bool finish() {
        for (int expiry = 0; expiry < 5000; ++expiry) {
            run();
            bool idle = true;
            Time next = never;
            for (const Rank& rank : ranks_) {
                idle = idle && rank.machine->idle();
                next = std::min(next, rank.machine->poll_timeout());
            }
            if (idle) return true;
            now = std::max(now, next);
            for (Rank& rank : ranks_) rank.machine->handle_timeout(now);
        }
        return false;
    }
    [[nodiscard]] bool sums_are_right() const {
        for (const Rank& rank : ranks_) {
            for (std::size_t i = 0; i < rank.output.size(); ++i) {
                std::int32_t sum = 0;
                for (const Rank& other : ranks_) sum += other.input[i];
                if (rank.output[i] != sum) return false;
            }
        }
        return !ranks_.empty();
    }
    [[nodiscard]] bool ready(std::uint16_t rank) const { return ranks_[rank].ready; }
    [[nodiscard]] const protocol::WorkerCounters& worker_counters(std::uint16_t rank) const {
        return ranks_[rank].machine->counters();
    }
    Shard& shard(unsigned number) { return *shards_.at(host(number)); }

    // False: the datagram is lost.
    std::function<bool(const Bytes& bytes, const wire::Address& from, const wire::Address& to)> arrives;
    std::uint64_t delivered = 0;
    std::uint16_t lanes = 4;  // of the ranks that are added from now on
    std::uint8_t window_log2 = 3;
    Time now{std::chrono::seconds(100)};

  private:
    struct Rank {
        std::unique_ptr<protocol::Worker> machine;
        wire::Join join;
        wire::Address at;
        wire::Address data_address;
        bool ready = false;
        std::vector<std::int32_t> input;
        std::vector<std::int32_t> output;
        std::unique_ptr<testing::IntegerTensor> tensor;
        std::unique_ptr<testing::OwnedTensor> owned;
    };
    struct Flight {
        Bytes bytes;
        wire::Address from;
        wire::Address to;
    };

    [[nodiscard]] static std::int32_t owned_input(std::uint16_t rank, std::size_t element) {
        return 1000 * (rank + 1) + static_cast<std::int32_t>(element);
    }
    void put(Bytes bytes, const wire::Address& from, const wire::Address& to) {
        if (!arrives || arrives(bytes, from, to)) flights_.push_back({std::move(bytes), from, to});
    }
    void take_from(const wire::Address& address, Shard& shard) {
        shard.collect();
        for (RecordingOutbox::Packet& packet : shard.sent) put(std::move(packet.bytes), address, packet.to);
    }
    void transmit() {
        for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
            Rank& at = ranks_[rank];
            Bytes buffer(at.machine->packet_bytes());
            while (at.ready) {
                const auto size = at.machine->poll_transmit(buffer, now);
                if (!size) break;
                put({buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*size)}, worker_address(rank),
                    at.data_address);
            }
            while (at.machine->poll_event()) {
            }
        }
    }
    void run() {
        transmit();
        do {
            for (; !flights_.empty() && delivered < 1'000'000; ++delivered) {
                Flight flight = std::move(flights_.front());
                flights_.pop_front();
                deliver(flight);
                transmit();
            }
            ASSERT_TRUE(flights_.empty()) << "packets multiply";
            send_gathered();
        } while (!flights_.empty());
    }
    // ACKs that wait for others leave before any timer of a rank expires.
    void send_gathered() {
        for (auto& [address, shard] : shards_) {
            const Time due = shard->machine.poll_timeout();
            if (due > now + std::chrono::microseconds(500)) continue;
            now = std::max(now, due);
            shard->machine.handle_timeout(shard->outbox, now);
            take_from(address, *shard);
        }
    }
    void deliver(Flight& flight) {
        now += std::chrono::microseconds(1);
        if (const auto shard = shards_.find(flight.to); shard != shards_.end()) {
            shard->second->take(flight.bytes, flight.from, now);
            for (RecordingOutbox::Packet& packet : shard->second->sent) {
                put(std::move(packet.bytes), flight.to, packet.to);
            }
            return;
        }
        for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
            if (worker_address(rank) != flight.to) continue;
            if (const auto joined = wire::decode<wire::Joined>(flight.bytes)) {
                ranks_[rank].ready = joined->ready;
                ranks_[rank].data_address = flight.from;
            } else {
                ranks_[rank].machine->handle_packet(flight.bytes, false, now);
            }
        }
    }

    protocol::Membership membership_;
    std::map<wire::Address, std::unique_ptr<Shard>> shards_;
    std::vector<Rank> ranks_;
    std::deque<Flight> flights_;
};

}  // namespace atp::endpoint
