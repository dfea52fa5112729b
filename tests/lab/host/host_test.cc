// SPDX-License-Identifier: Apache-2.0
// Ranks and a switch as processes that only exchange datagrams.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "control/timing.h"
#include "host/packet_list.h"
#include "host/rank_host.h"
#include "host/switch_host.h"
#include "support/byte_archive.h"
#include "wire/bytes.h"

namespace atp::host {
namespace {

using Kind = endpoint::ChannelEvent::Kind;

constexpr std::uint16_t ranks = 2;
const wire::Address switch_address = *wire::Address::parse("10.0.0.1:4790");

wire::Address address_of(std::uint16_t rank) {
    return switch_address.with_port(static_cast<std::uint16_t>(5000 + rank));
}

// Each element is the rank + 1.
class OnesTensor final : public protocol::Tensor {
  public:
    OnesTensor(std::uint32_t value, std::uint32_t& ended) : value_(value), ended_(ended) {}
    ~OnesTensor() override { ++ended_; }
    OnesTensor(const OnesTensor&) = delete;
    OnesTensor& operator=(const OnesTensor&) = delete;

    [[nodiscard]] std::uint64_t size() const override { return 20; }
    [[nodiscard]] bool plain() const override { return true; }
    [[nodiscard]] bool load_integers(std::uint64_t /*first*/, std::span<std::byte> lanes) const override {
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) wire::store_u32(lanes.data() + at, value_);
        return true;
    }
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {}
    void store(std::uint64_t /*first*/, std::span<const std::byte> lanes) override {
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) sum += wire::load_u32(lanes.data() + at);
    }

    std::uint32_t sum = 0;

  private:
    std::uint32_t value_;
    std::uint32_t& ended_;
};

struct Sent {
    wire::Address from;
    PacketList::ListedPacket packet;
};

// One switch and two ranks. Packets arrive at once, in order.
class Hosts : public ::testing::Test {
  protected:
    Hosts() {
        const auto members = std::make_shared<const protocol::Membership>(*protocol::Membership::star(ranks));
        for (std::uint16_t rank = 0; rank < ranks; ++rank) {
            endpoint::ChannelMachineConfig config;
            config.terms = {.job = 1,
                            .token = 7,
                            .lanes = 4,
                            .window_log2 = 3,
                            .aggregators = 4096,
                            .mask1 = members->all_units(),
                            .scale = 1e6};
            const protocol::Place place = members->place(rank);
            config.unit = {.unit = place.unit, .members = 1U << place.member, .mask0 = place.mask0, .ranks = {rank}};
            config.worker.channel = endpoint::channel_config(config.terms);
            config.worker.rank = rank;
            config.worker.place = place;
            config.worker.senders = protocol::SenderMasks(*members, rank);
            config.worker.scale = config.terms.scale;
            config.switch_address = switch_address;
            config.nonce = 100U + rank;
            config.membership = members;
            ranks_.push_back(std::make_unique<RankHost>(config, address_of(rank)));
        }
    }

    void send(const wire::Address& from) {
        for (auto& packet : out_.take()) links_.push_back({from, std::move(packet)});
    }
    void drive(RankHost& rank) {
        while (auto event = rank.poll_event(now_)) {
            if (event->kind == Kind::completed) sums_.push_back(static_cast<OnesTensor&>(rank.completed()).sum);
            if (event->kind == Kind::ready) ++ready_;
            if (event->kind == Kind::failed) ++failed_;
        }
        rank.transmit(out_, now_);
        send(rank.address());
        if (rank.poll_timeout() > now_) return;
        rank.handle_timeout(now_);  // such as a JOIN with the cookie that came just now
        drive(rank);
    }
    // Runs timers of the present moment, and delivers what is sent until nothing is in flight.
    void run() {
        for (const auto& rank : ranks_) {
            rank->handle_timeout(now_);
            drive(*rank);
        }
        switch_.handle_timeout(out_, now_);
        send(switch_address);
        for (; !links_.empty(); links_.pop_front()) deliver(links_.front());
    }
    void deliver(Sent& sent) {
        std::vector<std::byte>& bytes = sent.packet.bytes;
        const wire::Datagram datagram{
            .bytes = bytes, .capacity = bytes.size(), .from = &sent.from, .ecn = sent.packet.ecn};
        if (sent.packet.to == switch_address) {
            SwitchHost shadow(switch_config);
            if (shadows_) follow_with(shadow, sent);
            switch_.handle_datagram(datagram, out_, now_);
            EXPECT_TRUE(!shadows_ || testing::state_of(shadow) == testing::state_of(switch_));
            return send(switch_address);
        }
        for (const auto& rank : ranks_) {
            if (rank->address() != sent.packet.to) continue;
            RankHost shadow(rank->config(), rank->address());
            EXPECT_TRUE(!shadows_ || testing::copy_state(*rank, shadow));
            std::vector<std::byte> copy = bytes;
            shadow.handle_datagram({.bytes = copy, .capacity = copy.size(), .from = &sent.from}, now_);
            rank->handle_datagram(datagram, now_);
            EXPECT_TRUE(!shadows_ || testing::state_of(shadow) == testing::state_of(*rank));
            drive(*rank);
        }
    }
    void follow_with(SwitchHost& shadow, const Sent& sent) {
        EXPECT_TRUE(testing::copy_state(switch_, shadow));
        std::vector<std::byte> copy = sent.packet.bytes;
        PacketList out;
        shadow.handle_datagram({.bytes = copy, .capacity = copy.size(), .from = &sent.from}, out, now_);
    }

    bool shadows_ = false;  // a process with the restored state gets each datagram too
    Time now_{std::chrono::seconds(1)};
    std::uint32_t ended_ = 0;  // tensors
    SwitchHostConfig switch_config{.shard = {.table = {.aggregators = 4096, .lanes = 4}}, .address = switch_address};
    SwitchHost switch_{switch_config};
    std::vector<std::unique_ptr<RankHost>> ranks_;
    PacketList out_;
    std::deque<Sent> links_;
    std::vector<std::uint32_t> sums_;
    unsigned ready_ = 0;
    unsigned failed_ = 0;
};

TEST_F(Hosts, RanksJoinAndSumOwnedAndBorrowedTensors) {
    run();
    EXPECT_EQ(ready_, ranks);
    OnesTensor borrowed(1, ended_);
    ASSERT_TRUE(ranks_[0]->submit(borrowed, now_));
    ASSERT_TRUE(ranks_[1]->submit(std::make_unique<OnesTensor>(2U, ended_), now_));
    run();
    EXPECT_EQ(sums_, std::vector<std::uint32_t>({60, 60}));
    EXPECT_EQ(ended_, 1U);  // the owned one
    EXPECT_GT(switch_.shard().table().counters().events[ATP_EVENT_COMPLETED], 0U);
}

TEST_F(Hosts, RankThatEndsTakesNoTensorAndTheOtherFails) {
    run();
    ASSERT_TRUE(ranks_[1]->submit(std::make_unique<OnesTensor>(2U, ended_), now_));
    ranks_[0]->end();
    run();
    EXPECT_FALSE(ranks_[0]->submit(std::make_unique<OnesTensor>(1U, ended_), now_));
    for (const Time end = now_ + 2 * control::timing.left_grace; now_ < end; now_ += std::chrono::milliseconds(10))
        run();
    EXPECT_EQ(failed_, 1U);
}

// persist() includes the whole state of both processes.
TEST_F(Hosts, RestoredProcessesContinueLikeTheOriginals) {
    shadows_ = true;
    run();
    for (unsigned tensor = 0; tensor < 6; ++tensor) {
        for (const auto& rank : ranks_) ASSERT_TRUE(rank->submit(std::make_unique<OnesTensor>(1U, ended_), now_));
        now_ += std::chrono::milliseconds(60);
        run();
    }
    for (unsigned times = 0; times < 20; ++times, now_ += std::chrono::milliseconds(4)) run();
    EXPECT_EQ(sums_.size(), 12U);
    ranks_[0]->end();
    run();
    EXPECT_EQ(ended_, 12U);
}

TEST_F(Hosts, SwitchAnswersAHello) {
    std::vector<std::byte> bytes(512);
    const std::size_t size = wire::encode(wire::Hello{.nonce = 5}, bytes, bytes.size());
    links_.push_back(
        {address_of(9), {{bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}, switch_address}});
    deliver(links_.front());
    EXPECT_EQ(switch_.node().counters().answered, 1U);
}

TEST(PacketList, RepeatsTheLastPacketForAnotherReceiver) {
    PacketList list;
    EXPECT_FALSE(list.repeat(switch_address));
    const std::array bytes{std::byte{1}, std::byte{2}};
    EXPECT_TRUE(list.borrow(bytes, address_of(0), wire::Ecn::congested));
    EXPECT_TRUE(list.repeat(address_of(1)));
    const auto packets = list.take();
    ASSERT_EQ(packets.size(), 2U);
    EXPECT_EQ(packets[1].bytes, packets[0].bytes);
    EXPECT_EQ(packets[1].to, address_of(1));
    EXPECT_EQ(packets[1].ecn, wire::Ecn::congested);
    EXPECT_TRUE(list.take().empty());
}

}  // namespace
}  // namespace atp::host
