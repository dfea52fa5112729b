// SPDX-License-Identifier: Apache-2.0
// Which ACKs without lanes leave in lists, and when.
#include "endpoint/ack_gatherer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "shard_fixture.h"
#include "support/packets.h"

namespace atp::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr std::uint16_t wide = 64;

ShardMachineConfig wide_config(const wire::Address& parent = {}) {
    ShardMachineConfig config = shard_config(parent);
    config.table.lanes = wide;
    return config;
}

// Jobs whose packets are long enough for lists of 16.
struct Job : Cluster {
    explicit Job(const protocol::Membership& members)
        : Cluster(members), workers(static_cast<std::uint16_t>(members.workers())) {
        Cluster::lanes = wide;
        window_log2 = 5;
        arrives = [this](const Bytes& bytes, const wire::Address&, const wire::Address& to) {
            if (bytes.size() < ATP_HEADER_BYTES || !Shard::is_packet(bytes, ATP_TYPE_ACK_LIST)) return true;
            ++lists[to];
            return !loses || !loses();
        };
    }
    void run_star(const ShardMachineConfig& config) {
        add_shard(1, config);
        for (std::uint16_t rank = 0; rank < workers; ++rank) add_worker(rank, 1);
        join_all();
    }
    void run(bool one_sender, std::size_t fragments = 96) {
        submit_owned(one_sender, fragments);
        ASSERT_TRUE(finish());
        EXPECT_TRUE(owned_results_are_right(one_sender));
    }
    [[nodiscard]] const AckGathererCounters& counters(unsigned shard_number = 1) {
        return shard(shard_number).machine.ack_counters();
    }

    std::uint16_t workers;
    std::map<wire::Address, unsigned> lists;  // sent to each address
    std::function<bool()> loses;
};

protocol::Membership star(unsigned workers) { return *protocol::Membership::star(workers); }

TEST(AckGatherer, AcksOfSumsForOthersAreGathered) {
    Job job(star(3));
    job.run_star(wide_config());
    job.run(false);
    EXPECT_GT(job.counters().acks, 60U) << "of 96";
    EXPECT_GE(job.counters().acks, 4 * job.counters().lists);
    EXPECT_THAT(job.lists, SizeIs(3)) << "each member gets a copy";
    EXPECT_EQ(job.shard(1).machine.table().occupied(), 0U);
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(job.worker_counters(rank).refused, 0U);
        EXPECT_EQ(job.worker_counters(rank).acks, 96U);
    }
}

TEST(AckGatherer, AcksToTheSendersOfAnAllGatherAreGathered) {
    Job job(star(3));
    job.run_star(wide_config());
    job.run(true);
    EXPECT_GT(job.counters().acks, 48U) << "of 96";
    EXPECT_THAT(job.lists, SizeIs(3)) << "one for each sender";
    for (std::uint16_t rank = 0; rank < 3; ++rank) EXPECT_EQ(job.worker_counters(rank).acks, 96U);
}

TEST(AckGatherer, ListIsNoLongerThanAFullPacket) {
    Job job(star(3));
    job.lanes = 8;
    std::size_t longest = 0;
    job.arrives = [&longest](const Bytes& bytes, const wire::Address&, const wire::Address&) {
        if (Shard::is_packet(bytes, ATP_TYPE_ACK_LIST)) longest = std::max(longest, bytes.size());
        return true;
    };
    job.run_star(wide_config());
    job.run(false);
    EXPECT_EQ(longest, ATP_HEADER_BYTES + 8 * ATP_LANE_BYTES);
}

TEST(AckGatherer, TooShortPacketsHaveNoRoomForAList) {
    Job job(star(3));
    job.lanes = 3;
    job.run_star(wide_config());
    job.run(false);
    EXPECT_EQ(job.counters().lists, 0U);
}

// Without aggregators of its own, the switch cannot know whether others have added the fragments.
TEST(AckGatherer, AcksOfSumsThatAnotherSwitchMayHoldAreNotGathered) {
    ShardMachineConfig config = wide_config();
    config.table.aggregators = 0;
    Job job(star(3));
    job.run_star(config);
    job.run(false);
    EXPECT_EQ(job.counters().lists, 0U);
    job.run(true);
    EXPECT_GT(job.counters().lists, 0U) << "no aggregator ever holds the lanes of one sender";
}

TEST(AckGatherer, RootSendsNoListsAndLeavesGather) {
    Job job(*protocol::Membership::racks(2, 2));
    job.add_shard(1, wide_config());
    for (unsigned leaf = 2; leaf <= 3; ++leaf) job.add_shard(leaf, wide_config(host(1)));
    for (std::uint16_t rank = 0; rank < 4; ++rank) job.add_worker(rank, rank < 2 ? 2 : 3);
    job.join_all();
    job.run(false);
    job.run(true);
    EXPECT_EQ(job.counters(1).lists, 0U) << "leaves free aggregators by ACKs";
    for (unsigned number = 1; number <= 3; ++number) {
        EXPECT_EQ(job.shard(number).machine.table().occupied(), 0U) << number;
    }
}

// Members of a rack whose switch is in the path and has no address.
TEST(AckGatherer, WorkersBehindASwitchInThePathGetNoLists) {
    Job job(*protocol::Membership::racks(2, 2));
    job.add_shard(1, wide_config());
    for (std::uint16_t rank = 0; rank < 4; ++rank) job.add_worker(rank, 1, 1);
    job.join_all();
    job.run(false);
    job.run(true);
    EXPECT_EQ(job.counters().lists, 0U);
}

TEST(AckGatherer, WithoutAHoldOnlyAcksOfOneBatchAreGathered) {
    ShardMachineConfig config = wide_config();
    config.ack_hold = Duration::zero();
    Job job(star(3));
    job.run_star(config);
    job.run(false);
    EXPECT_LT(job.counters().acks, 60U)
        << "each batch of this network has one packet, which seldom completes two fragments";
}

TEST(AckGatherer, H89_LostListsAreRecovered) {
    for (const bool one_sender : {false, true}) {
        for (unsigned every = 2; every <= 5; ++every) {
            SCOPED_TRACE(every);
            Job job(star(3));
            unsigned seen = 0;
            job.loses = [&] { return ++seen % every == 0; };
            job.run_star(wide_config());
            for (int operation = 0; operation < 4; ++operation) job.run(one_sender);
            EXPECT_GT(seen, every);
            EXPECT_EQ(job.shard(1).machine.table().occupied(), 0U);
        }
    }
}

// A branch of three workers, and a gatherer with one list for all of them and lists for each.
class Gatherer : public ::testing::Test {
  protected:
    Gatherer() {
        wire::Join join;
        for (std::uint16_t rank = 0; rank < 3; ++rank) {
            join = join_of(members.place(rank), rank);
            join.terms.lanes = wide;
            if (rank == 0) branch = control::Branch::of(join);
            branch.attach(join, worker_address(rank), now);
        }
    }
    [[nodiscard]] Bytes ack(std::uint32_t seq, std::uint16_t worker = ATP_WORKER_ALL) const {
        atp_header header{};
        header.type = ATP_TYPE_ACK;
        header.job = job, header.token = token, header.channel = channel;
        header.worker = worker;
        header.seq = seq;
        header.peer = 1;
        header.bitmap1 = header.mask1 = 1;
        return testing::make_packet(header);
    }
    [[nodiscard]] std::vector<RecordingOutbox::Packet> transmit(bool expects_more) {
        gatherer.transmit(outbox, now, [&](const control::ChannelKey&) {
            return AckGatherer::Channel{.branch = ended ? nullptr : &branch, .expects_more = expects_more};
        });
        return outbox.flush();
    }
    [[nodiscard]] static std::vector<wire::Address> receivers(const std::vector<RecordingOutbox::Packet>& packets) {
        std::vector<wire::Address> to;
        for (const auto& packet : packets) to.push_back(packet.to);
        return to;
    }

    protocol::Membership members = star(3);
    Time now{std::chrono::seconds(100)};
    control::Branch branch;
    RecordingOutbox outbox;
    AckGatherer gatherer{std::chrono::microseconds(200)};
    bool ended = false;
};

TEST_F(Gatherer, AcksWaitWhileMoreAreExpectedButNotLonger) {
    ASSERT_TRUE(gatherer.add(branch, ack(1), now));
    EXPECT_THAT(transmit(true), IsEmpty());
    EXPECT_EQ(gatherer.poll_timeout(), now + std::chrono::microseconds(200));
    now += std::chrono::microseconds(150);
    ASSERT_TRUE(gatherer.add(branch, ack(2), now));
    EXPECT_THAT(transmit(true), IsEmpty());
    now += std::chrono::microseconds(50);
    const auto sent = transmit(true);
    EXPECT_THAT(receivers(sent), ElementsAre(worker_address(0), worker_address(1), worker_address(2)));
    EXPECT_TRUE(Shard::is_packet(sent[0].bytes, ATP_TYPE_ACK_LIST));
    EXPECT_EQ(gatherer.poll_timeout(), never);
    ASSERT_TRUE(gatherer.add(branch, ack(3), now));
    const auto alone = transmit(false);
    ASSERT_THAT(alone, SizeIs(3));
    EXPECT_EQ(alone[0].bytes, ack(3)) << "one ACK is no list";
    EXPECT_EQ(gatherer.counters().acks, 2U);
    EXPECT_EQ(gatherer.counters().lists, 1U);
}

TEST_F(Gatherer, FullListLeavesAtOnceAndTakesNoMore) {
    for (std::uint32_t seq = 0; seq < 15; ++seq) ASSERT_TRUE(gatherer.add(branch, ack(seq, 2), now));
    ASSERT_TRUE(gatherer.add(branch, ack(0, 1), now));
    EXPECT_FALSE(gatherer.is_full());
    ASSERT_TRUE(gatherer.add(branch, ack(15, 2), now));
    EXPECT_TRUE(gatherer.is_full());
    EXPECT_FALSE(gatherer.add(branch, ack(16, 2), now));
    EXPECT_THAT(receivers(transmit(true)), ElementsAre(worker_address(2))) << "the other list waits on";
    EXPECT_FALSE(gatherer.is_full());
    EXPECT_THAT(receivers(transmit(false)), ElementsAre(worker_address(1)));
}

TEST_F(Gatherer, AnAckThatLeavesByItselfHastensTheOthersOfItsChannel) {
    ASSERT_TRUE(gatherer.add(branch, ack(1), now));
    gatherer.hasten({.job = job, .token = token, .channel = channel + 1});
    EXPECT_THAT(transmit(true), IsEmpty());
    gatherer.hasten({.job = job, .token = token, .channel = channel});
    EXPECT_THAT(transmit(true), SizeIs(3));
}

TEST_F(Gatherer, ListsWaitForRoom) {
    ASSERT_TRUE(gatherer.add(branch, ack(1), now));
    outbox.room = 0;
    EXPECT_THAT(transmit(false), IsEmpty());
    EXPECT_TRUE(gatherer.blocked());
    EXPECT_EQ(gatherer.poll_timeout(), never) << "until there is room";
    outbox.room = 2;
    EXPECT_THAT(transmit(true), IsEmpty()) << "the hold has not passed";
    EXPECT_THAT(transmit(false), SizeIs(2));
    EXPECT_FALSE(gatherer.blocked());
    EXPECT_EQ(gatherer.counters().unsent, 1U);
}

TEST_F(Gatherer, AcksOfAChannelThatEndedAreDropped) {
    ASSERT_TRUE(gatherer.add(branch, ack(1), now));
    gatherer.close({.job = job, .token = token, .channel = channel});
    EXPECT_THAT(transmit(false), IsEmpty());
    ASSERT_TRUE(gatherer.add(branch, ack(2), now));
    ended = true;
    EXPECT_THAT(transmit(false), IsEmpty());
    EXPECT_EQ(gatherer.poll_timeout(), never);
}

}  // namespace
}  // namespace atp::endpoint
