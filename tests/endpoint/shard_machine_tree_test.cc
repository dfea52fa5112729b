// SPDX-License-Identifier: Apache-2.0
// Control messages, and channels that come and go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "shard_fixture.h"
#include "support/packets.h"

namespace atp::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const protocol::Membership two = *protocol::Membership::star(2);

wire::Join join_of_rank(std::uint16_t rank) { return join_of(two.place(rank), rank); }
wire::Leave leave_of_rank(std::uint8_t rank) {
    return {.job = job, .token = token, .channel = channel, .unit = 0, .member = rank};
}

std::optional<wire::Joined> joined_to(const Shard& shard, const wire::Address& to) {
    return shard.last<wire::Joined>(wire::decode<wire::Joined>, to);
}
std::optional<wire::Refused> refused_to(const Shard& shard, const wire::Address& to) {
    return shard.last<wire::Refused>(wire::decode<wire::Refused>, to);
}

TEST(ShardMachine, JoinedReportsReadyOnceTheServerIsThere) {
    Shard shard;
    shard.take(encoded(join_of_rank(0)), worker_address(0));
    ASSERT_TRUE(joined_to(shard, worker_address(0)));
    EXPECT_FALSE(joined_to(shard, worker_address(0))->ready);
    shard.take(encoded(join_of_rank(1)), worker_address(1));
    for (const unsigned rank : {0U, 1U}) EXPECT_TRUE(joined_to(shard, worker_address(rank))->ready) << rank;
    const control::Branch* found = nullptr;
    shard.machine.tree().for_each([&](const control::Branch& branch) { found = &branch; });
    ASSERT_NE(found, nullptr);
    EXPECT_NE(shard.machine.server_of(*found), nullptr);
    EXPECT_TRUE(shard.machine.reaches_groups());
}

TEST(ShardMachine, JoinWithoutTheCookieIsAskedForItAndCounted) {
    Shard shard;
    wire::Join join = join_of_rank(0);
    join.epoch = 1;
    shard.take(encoded(join, wire::least_question_bytes), worker_address(0));
    const auto retry = shard.last<wire::Retry>(wire::decode<wire::Retry>, worker_address(0));
    ASSERT_TRUE(retry);
    EXPECT_EQ(shard.machine.gatekeeper().retries(), 1U);
    EXPECT_EQ(shard.machine.tree().channels(), 0U);
    join.cookie = retry->cookie;
    shard.take(encoded(join, wire::least_question_bytes), worker_address(0));
    EXPECT_TRUE(joined_to(shard, worker_address(0)));
    EXPECT_EQ(shard.machine.gatekeeper().retries(), 1U);
}

TEST(ShardMachine, EventsBeyondTheBoundAreDroppedAndCounted) {
    ShardMachineConfig config = shard_config();
    config.passes_messages = true;
    ShardMachine machine(config);
    RecordingOutbox outbox;
    Bytes stats = encoded(wire::Stats{.nonce = 1});
    const wire::Address from = host(5);
    const wire::Datagram datagram{.bytes = stats, .capacity = stats.size(), .from = &from};
    for (int i = 0; i < 1025; ++i) machine.handle_batch({&datagram, 1}, outbox, Time{});
    EXPECT_EQ(machine.counters().events_lost, 1U);
    int events = 0;
    while (machine.poll_event()) ++events;
    EXPECT_EQ(events, 1024);
}

TEST(ShardMachine, MessageThatDoesNotDecodeIsCounted) {
    Shard shard;
    const std::vector<Bytes> messages = {
        encoded(join_of_rank(0)), encoded(leave_of_rank(0)),
        encoded(wire::Joined{.job = job, .token = token, .channel = channel}),
        encoded(wire::Refused{.job = job, .token = token, .channel = channel, .text = "no"})};
    for (Bytes message : messages) {
        message.resize(wire::control_prefix_bytes + 2);
        shard.take(message, worker_address(0));
    }
    shard.take(encoded(wire::Hello{.nonce = 1}, wire::least_question_bytes), worker_address(0));
    EXPECT_EQ(shard.machine.counters().control_refused, 5U);
    EXPECT_THAT(shard.sent, IsEmpty());
}

TEST(ShardMachine, HostsThatAreNoClientsGetNoAnswerAndAParentNeedNotBeOne) {
    ShardMachineConfig config = shard_config(host(1));
    config.clients = *control::parse_ranges("10.0.0.100/32");
    Shard shard(config);
    const wire::Address stranger = host(5);
    shard.take(encoded(join_of_rank(0)), stranger);
    shard.take(encoded(leave_of_rank(0)), stranger);
    shard.take(encoded(wire::Hello{.nonce = 1}, wire::least_question_bytes), stranger);
    shard.take(encoded(wire::Stats{.nonce = 1}), stranger);
    EXPECT_THAT(shard.sent, IsEmpty());
    EXPECT_THAT(shard.events, IsEmpty());
    EXPECT_EQ(shard.machine.gatekeeper().strangers(), 4U);
    shard.take(encoded(wire::Joined{.job = job, .token = token, .channel = channel}), host(1));
    EXPECT_EQ(shard.machine.gatekeeper().strangers(), 4U);
    shard.take(encoded(join_of_rank(0)), worker_address(0));
    EXPECT_TRUE(joined_to(shard, worker_address(0)));
}

TEST(ShardMachine, ClientsChangeForThoseThatAskLater) {
    Shard shard;
    shard.machine.set_hosts({.clients = *control::parse_ranges("10.0.0.100/32"), .servers = {}, .groups = {}});
    shard.take(encoded(join_of_rank(0)), host(5));
    EXPECT_THAT(shard.sent, IsEmpty());
    EXPECT_EQ(shard.machine.gatekeeper().strangers(), 1U);
    shard.machine.set_hosts({});
    shard.take(encoded(join_of_rank(0)), worker_address(0));
    EXPECT_TRUE(joined_to(shard, worker_address(0)));
}

TEST(ShardMachine, ControlMessageWithoutRoomIsDropped) {
    Shard shard;
    shard.outbox.room = 0;
    shard.take(encoded(join_of_rank(0)), worker_address(0));
    EXPECT_THAT(shard.sent, IsEmpty());
    EXPECT_EQ(shard.machine.tree().channels(), 1U);
    shard.outbox.room = 1;
    shard.take(encoded(join_of_rank(0)), worker_address(0));
    EXPECT_TRUE(joined_to(shard, worker_address(0))) << "its sender repeats the JOIN";
}

TEST(ShardMachine, LastMemberThatLeavesClosesTheChannelAndItsServer) {
    Shard shard;
    for (std::uint16_t rank = 0; rank < 2; ++rank) shard.take(encoded(join_of_rank(rank)), worker_address(rank));
    shard.take(encoded(leave_of_rank(0)), worker_address(0));
    EXPECT_EQ(shard.machine.tree().channels(), 1U);
    shard.take(encoded(leave_of_rank(1)), worker_address(1));
    EXPECT_EQ(shard.machine.tree().channels(), 0U);
    EXPECT_EQ(shard.machine.table().job_counters(job, token), nullptr) << "the job is dismissed";
    for (std::uint16_t rank = 0; rank < 2; ++rank) shard.take(encoded(join_of_rank(rank)), worker_address(rank));
    EXPECT_TRUE(joined_to(shard, worker_address(0))->ready) << "the job can form again";
}

TEST(ShardMachine, ServerWithWaitingAnswersCanClose) {
    Shard shard;
    for (std::uint16_t rank = 0; rank < 2; ++rank) shard.take(encoded(join_of_rank(rank)), worker_address(rank));
    shard.outbox.room = 0;
    atp_header header{};
    header.type = ATP_TYPE_PROBE;
    header.window_log2 = 3;
    header.job = job, header.token = token, header.channel = channel;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = 1, header.mask0 = 3, header.bitmap1 = 1, header.mask1 = 1;
    shard.take(testing::make_packet(header), worker_address(0));
    ASSERT_TRUE(shard.machine.has_answers());
    for (std::uint8_t rank = 0; rank < 2; ++rank) shard.take(encoded(leave_of_rank(rank)), worker_address(rank));
    EXPECT_FALSE(shard.machine.has_answers());
    shard.outbox.room = 9;
    shard.machine.handle_room(shard.outbox, Time{});
    shard.collect();
    EXPECT_THAT(shard.sent, IsEmpty());
}

TEST(ShardMachine, SilentMembersExpire) {
    Shard shard;
    const Time begin{std::chrono::seconds(100)};
    for (std::uint16_t rank = 0; rank < 2; ++rank) shard.take(encoded(join_of_rank(rank)), worker_address(rank), begin);
    Time now = begin;
    for (int sweep = 0; sweep < 100 && shard.machine.tree().channels() != 0; ++sweep) {
        now = std::max(now, shard.machine.poll_timeout());
        shard.machine.handle_timeout(shard.outbox, now);
        shard.collect();
    }
    EXPECT_EQ(shard.machine.tree().channels(), 0U);
    EXPECT_EQ(shard.machine.tree().counters().expired, 2U);
    EXPECT_GE(now - begin, control::timing.hold);
    EXPECT_LT(now - begin, control::timing.hold + control::timing.refresh);
}

// The report that no process has the port of `to`, about the last packet to it.
wire::SendError no_process(const wire::Address& to, const Bytes& packet) {
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = to, .by_network = true};
    error.quoted_bytes = std::min(packet.size(), error.quoted.size());
    std::copy_n(packet.begin(), error.quoted_bytes, error.quoted.begin());
    return error;
}

TEST(ShardMachine, MemberWhoseHostReportsNoProcessIsAskedAtOnceAndThenRemoved) {
    Shard shard;
    Time now{std::chrono::seconds(100)};
    for (std::uint16_t rank = 0; rank < 2; ++rank) shard.take(encoded(join_of_rank(rank)), worker_address(rank), now);
    Bytes packet = encoded(*joined_to(shard, worker_address(1)));
    const Time begin = now;
    for (int report = 0; report < 20 && shard.machine.tree().counters().closed == 0; ++report) {
        now += std::chrono::milliseconds(20);
        shard.machine.handle_send_error(no_process(worker_address(1), packet), shard.outbox, now);
        shard.collect();
        EXPECT_TRUE(report != 0 || joined_to(shard, worker_address(1))) << "it is asked to answer";
        now = std::max(now, shard.machine.poll_timeout());
        shard.machine.handle_timeout(shard.outbox, now);
        shard.collect();
    }
    EXPECT_EQ(shard.machine.tree().counters().closed, 1U);
    EXPECT_LT(now - begin, std::chrono::seconds(1)) << "long before the hold time";
    const auto told = joined_to(shard, worker_address(0));
    ASSERT_TRUE(told);
    EXPECT_FALSE(told->ready);
    ASSERT_EQ(told->edges.size(), 1U);
    EXPECT_EQ(told->edges[0].evidence, wire::Evidence::closed);
    EXPECT_EQ(told->edges[0].member, 1U);
}

TEST(ShardMachine, ReportAboutNoPacketOfAChannelIsCountedAndSendsNothing) {
    Shard shard;
    for (std::uint16_t rank = 0; rank < 2; ++rank) shard.take(encoded(join_of_rank(rank)), worker_address(rank));
    const Bytes forged = encoded(wire::Joined{.job = job, .token = token + 1, .channel = channel});
    shard.machine.handle_send_error(no_process(worker_address(1), forged), shard.outbox, {});
    shard.collect();
    EXPECT_THAT(shard.sent, IsEmpty());
    EXPECT_EQ(shard.machine.tree().counters().stray_errors, 1U);
}

// While it exists, this process can map only `bytes` more.
class LittleMemory {
  public:
    explicit LittleMemory(std::uint64_t bytes) {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit lower{.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes, .rlim_max = 0};
        is_set_ = ::getrlimit(RLIMIT_AS, &before_) == 0;
        lower.rlim_max = before_.rlim_max;
        is_set_ = is_set_ && pages != 0 && ::setrlimit(RLIMIT_AS, &lower) == 0;
    }
    ~LittleMemory() {
        if (is_set_) ::setrlimit(RLIMIT_AS, &before_);
    }
    LittleMemory(const LittleMemory&) = delete;
    LittleMemory& operator=(const LittleMemory&) = delete;
    [[nodiscard]] bool is_set() const { return is_set_; }

  private:
    rlimit before_{};
    bool is_set_ = false;
};

// `server_bytes` promises more memory than the host has. The switch of all other jobs goes on.
TEST(ShardMachine, ServerWithoutMemoryIsRefusedToItsMembersAndOtherJobsGoOn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer maps more than the limit";
#endif
    ShardMachineConfig config = shard_config();
    config.tree.server_bytes = ~std::uint64_t{0};
    Shard shard(config);
    wire::Join large = join_of(protocol::Membership::star(1)->place(0), 0);
    large.terms.window_log2 = ATP_WINDOW_LOG2_MAX;
    large.terms.lanes = ATP_MAX_LANES;
    {
        const LittleMemory memory(64U << 20U);
        ASSERT_TRUE(memory.is_set());
        shard.take(encoded(large), worker_address(0));
    }
    const auto refused = refused_to(shard, worker_address(0));
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->reason, wire::Refusal::full);
    EXPECT_THAT(refused->text, HasSubstr("no memory for another parameter server of " +
                                         std::to_string(control::server_bytes_of(large.terms) / 1'000'000) + " MB"));
    EXPECT_EQ(shard.machine.tree().channels(), 0U);
    wire::Join small = join_of(protocol::Membership::star(1)->place(0), 0);
    small.terms.job = job + 1;
    shard.take(encoded(small), worker_address(1));
    ASSERT_TRUE(joined_to(shard, worker_address(1)));
    EXPECT_TRUE(joined_to(shard, worker_address(1))->ready);
}

TEST(ShardMachine, RefusalFromAboveReachesTheMembers) {
    Shard leaf(shard_config(host(9)));
    const protocol::Membership racks = *protocol::Membership::racks(2, 1);
    leaf.take(encoded(join_of(racks.place(0), 0)), worker_address(0));
    leaf.take(encoded(wire::Refused{.nonce = leaf.up_nonce(),
                                    .job = job,
                                    .token = token,
                                    .channel = channel,
                                    .reason = wire::Refusal::full,
                                    .text = "no free entry"}),
              host(9));
    ASSERT_TRUE(refused_to(leaf, worker_address(0)));
    EXPECT_THAT(refused_to(leaf, worker_address(0))->text, HasSubstr("no free entry"));
    EXPECT_EQ(leaf.machine.tree().channels(), 0U);
}

// A switch in the path keeps the addresses of what it changes, and exchanges those of a FLUSH.
TEST(ShardMachine, SumsOfASwitchInThePathComeFromTheMembersBehindIt) {
    const protocol::Membership racks = *protocol::Membership::racks(2, 2);
    Shard root;
    for (std::uint16_t rank = 0; rank < 4; ++rank) {
        wire::Join join = join_of(racks.place(rank), rank);
        join.level = 1;
        root.take(encoded(join), worker_address(rank));
    }
    atp_header sum{};
    sum.type = ATP_TYPE_GRADIENT;
    sum.flags = ATP_FLAG_PLAIN | ATP_FLAG_BYPASS;
    sum.lanes = ATP_INT32_LANES;
    sum.hop = 1;
    sum.window_log2 = 3;
    sum.job = job, sum.token = token, sum.channel = channel;
    sum.index = 5;
    sum.peer = ATP_WORKER_ALL;
    sum.bitmap0 = 3, sum.mask0 = 3, sum.bitmap1 = 2, sum.mask1 = 3;
    sum.worker = 3;
    const Bytes complete = testing::make_packet(sum, {1, 2, 3, 4});
    sum.worker = ATP_WORKER_ALL;
    sum.bitmap0 = 2;
    const Bytes flushed = testing::make_packet(sum, {1, 2, 3, 4});
    root.take(complete, worker_address(2));
    root.take(flushed, host(99));
    EXPECT_EQ(root.packets().strangers, 2U);
    root.take(complete, worker_address(3));
    root.take(flushed, worker_address(2));
    EXPECT_EQ(root.packets().strangers, 2U);
    EXPECT_EQ(root.packets().events[ATP_EVENT_BYPASSED], 2U);
}

TEST(ShardMachine, FlushOfAServerElsewhereReachesTheFirstMemberOfARackInThePath) {
    const protocol::Membership racks = *protocol::Membership::racks(2, 2);
    Shard root;
    for (std::uint16_t rank = 0; rank < 4; ++rank) {
        wire::Join join = join_of(racks.place(rank), rank);
        join.level = 1;
        join.terms.server = control::endpoint_of(host(50));
        root.take(encoded(join), worker_address(rank));
    }
    atp_header header{};
    header.type = ATP_TYPE_FLUSH;
    header.window_log2 = 3;
    header.job = job, header.token = token, header.channel = channel;
    header.worker = ATP_WORKER_ALL;
    header.index = 5;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = 3, header.mask0 = 3, header.bitmap1 = 2, header.mask1 = 3;
    root.take(testing::make_packet(header), host(50));
    EXPECT_THAT(root.sent, IsEmpty()) << "the host of the server has not answered yet";
    root.message(encoded(wire::Joined{.nonce = root.up_nonce(),
                                      .job = job,
                                      .token = token,
                                      .channel = channel,
                                      .epoch = 1,
                                      .number = 1,
                                      .ready = true}),
                 host(50));
    root.take(testing::make_packet(header), host(99));
    EXPECT_THAT(root.sent, IsEmpty()) << "a stranger";
    root.take(testing::make_packet(header), host(50));
    EXPECT_THAT(root.receivers(ATP_TYPE_FLUSH), ElementsAre(worker_address(2)));
    root.outbox.room = 0;
    root.take(testing::make_packet(header), host(50));
    EXPECT_EQ(root.machine.counters().unrouted, 1U);
    header.token = token + 1;
    root.outbox.room = 9;
    root.take(testing::make_packet(header), host(50));
    EXPECT_THAT(root.sent, IsEmpty()) << "another token";
}

}  // namespace
}  // namespace atp::endpoint
