// SPDX-License-Identifier: Apache-2.0
// SwitchML's part of a switch without a socket: the test supplies branches, and packets as bytes.
#include "switchml/stream_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "switchml/packet.h"

namespace atp::switchml {
namespace {

using namespace atp::switchml;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr std::uint16_t lanes = 4;
constexpr std::uint8_t slots_log2 = 2;

wire::Address worker(unsigned rank) { return *wire::Address::parse("10.0.0." + std::to_string(100 + rank) + ":4791"); }

control::Branch branch_of(std::uint32_t job, unsigned workers = 2) {
    control::Branch branch;
    branch.terms = {.job = job,
                    .token = 1,
                    .lanes = lanes,
                    .window_log2 = slots_log2,
                    .mask1 = 1,
                    .scale = 1,
                    .server = {},
                    .protocol = wire::ChannelProtocol::switchml};
    branch.mask = branch.present = (1U << workers) - 1;
    for (unsigned rank = 0; rank < workers; ++rank) branch.children[rank].address = worker(rank);
    return branch;
}

// The first fragment of a stream; all lanes are the worker's number plus one.
Bytes update(std::uint8_t stream, std::uint8_t rank) {
    Bytes bytes(header_bytes + lanes * int32_lane_bytes);
    encode_header({.flags = 0, .job = stream, .worker = rank, .slot = 0, .offset = 0}, bytes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        wire::store_u32(bytes.data() + header_bytes + lane * int32_lane_bytes, rank + 1U);
    }
    return bytes;
}

TEST(StreamPool, SumIsSentToAllMembersOfTheBranch) {
    StreamPool pool({.slots = 16, .lanes = lanes});
    const control::Branch branch = branch_of(7);
    const auto stream = pool.open(branch);
    ASSERT_TRUE(stream);
    Bytes first = update(*stream, 0);
    EXPECT_EQ(pool.handle_packet(first, worker(0)).children, 0U);
    Bytes second = update(*stream, 1);
    const auto answer = pool.handle_packet(second, worker(1));
    EXPECT_EQ(answer.children, 0x3U);
    EXPECT_EQ(answer.branch, &branch);
    EXPECT_EQ(wire::load_u32(second.data() + header_bytes), 3U);
    const PoolSnapshot snapshot = pool.snapshot();
    ASSERT_EQ(snapshot.streams.size(), 1U);
    EXPECT_EQ(snapshot.streams[0].job, 7U);
    EXPECT_EQ(snapshot.streams[0].packets.count(Event::completed), 1U);
    EXPECT_EQ(snapshot.free_slots, 12U);
}

TEST(StreamPool, PacketFromAnotherAddressThanItsMemberIsDroppedAndCounted) {
    StreamPool pool({.slots = 16, .lanes = lanes});
    control::Branch branch = branch_of(7);
    const auto stream = pool.open(branch);
    ASSERT_TRUE(stream);
    Bytes bytes = update(*stream, 0);
    EXPECT_EQ(pool.handle_packet(bytes, worker(1)).children, 0U) << "another member";
    EXPECT_EQ(pool.handle_packet(bytes, worker(9)).children, 0U) << "the address of no member";
    bytes = update(*stream, 40);
    EXPECT_EQ(pool.handle_packet(bytes, worker(0)).children, 0U) << "a number that no member has";
    branch.present = 0x2;
    bytes = update(*stream, 0);
    EXPECT_EQ(pool.handle_packet(bytes, worker(0)).children, 0U) << "a member that has left";
    EXPECT_EQ(pool.snapshot().strangers, 4U);
    EXPECT_EQ(pool.snapshot().packets.count(Event::gathered), 0U);

    bytes = update(static_cast<std::uint8_t>(*stream + 1), 0);
    EXPECT_EQ(pool.handle_packet(bytes, worker(0)).children, 0U) << "of no stream";
    EXPECT_EQ(pool.snapshot().packets.count(Event::forged), 1U);
    Bytes stub(3, std::byte{format_byte});
    EXPECT_EQ(pool.handle_packet(stub, worker(0)).children, 0U);
    EXPECT_EQ(pool.snapshot().packets.count(Event::refused), 1U);
}

TEST(StreamPool, StreamWithoutFreeSlotsIsRefusedUntilAnotherEnds) {
    StreamPool pool({.slots = 6, .lanes = lanes});
    const control::Branch first = branch_of(1);
    const control::Branch second = branch_of(2);
    ASSERT_TRUE(pool.open(first));
    const auto refused = pool.open(second);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("2 of 6 slots are free"));
    EXPECT_LE(refused.error().size(), wire::max_refusal_bytes);
    pool.close({.job = 2, .token = 1, .channel = 0});  // was never opened
    EXPECT_FALSE(pool.open(second));
    pool.close({.job = 1, .token = 1, .channel = 0});
    EXPECT_TRUE(pool.open(second));
}

TEST(StreamPool, PacketsLongerThanASlotAreRefused) {
    StreamPool pool({.slots = 16, .lanes = lanes - 1});
    const control::Branch branch = branch_of(1);
    const auto refused = pool.open(branch);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("--lanes"));
    EXPECT_LE(refused.error().size(), wire::max_refusal_bytes);
}

TEST(StreamPool, PoolWithoutMemoryForASlotIsRefused) {
    StreamPool pool({.slots = 0, .lanes = lanes});
    const auto refused = pool.open(branch_of(1));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("--memory"));
    EXPECT_LE(refused.error().size(), wire::max_refusal_bytes);
}

TEST(StreamPool, StreamNumbersRotateWithoutRepetition) {
    StreamPool pool({.slots = 4096, .lanes = lanes});
    std::vector<control::Branch> branches;
    for (std::uint32_t job = 0; job < 257; ++job) branches.push_back(branch_of(job));
    for (std::uint32_t job = 0; job < 3; ++job) {
        EXPECT_EQ(pool.open(branches[0]).value_or(99), job) << "not the one that was freed just now";
        pool.close({.job = 0, .token = 1, .channel = 0});
    }
    std::array<bool, 256> given{};
    for (std::uint32_t job = 0; job < 256; ++job) {
        const auto number = pool.open(branches[job]);
        ASSERT_TRUE(number);
        EXPECT_FALSE(given[*number]);
        given[*number] = true;
    }
    const auto refused = pool.open(branches[256]);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("256"));
}

TEST(StreamPool, RefusesJoinsThatNeedMoreThanOneSwitchOrAServer) {
    const StreamPool pool({.slots = 16, .lanes = lanes});
    wire::Join join{.terms = branch_of(1).terms, .level = 0, .units = {{.members = 1, .mask0 = 1, .ranks = {0}}}};
    EXPECT_EQ(pool.objection_to(join), std::nullopt);
    const std::vector<std::pair<void (*)(wire::Join&), const char*>> changes{
        {[](wire::Join& changed) { changed.terms.mask1 = 0x3; }, "one switch"},
        {[](wire::Join& changed) { changed.level = 1; }, "one switch"},
        {[](wire::Join& changed) { changed.terms.audit = true; }, "no audit lane"},
        {[](wire::Join& changed) { changed.terms.server.family = 4; }, "no parameter server"},
        {[](wire::Join& changed) { changed.terms.group.family = 4; }, "no group"}};
    for (const auto& [change, text] : changes) {
        wire::Join changed = join;
        change(changed);
        EXPECT_THAT(pool.objection_to(changed).value_or(""), HasSubstr(text));
    }
}

TEST(StreamPool, ReportsPoolAndStreamsAsJson) {
    StreamPool pool({.slots = 16, .lanes = lanes});
    const control::Branch branch = branch_of(7);
    const auto stream = pool.open(branch);
    ASSERT_TRUE(stream);
    Bytes bytes = update(*stream, 0);
    EXPECT_EQ(pool.handle_packet(bytes, worker(0)).children, 0U);
    EXPECT_EQ(pool.report_parts(),
              R"({"switchml":{"slots":16,"free_slots":12,"packets":{"gathered":1,"completed":0,"duplicates":0,)"
              R"("answered":0,"late":0,"ahead":0,"misfits":0,"overflows":0,"forged":0,"strangers":0},"refused":{},)"
              R"("streams":[{"job":"00000007","channel":0,"stream":0,"slots":4,"packets":{"gathered":1,"completed":0,)"
              R"("duplicates":0,"answered":0,"late":0,"ahead":0,"misfits":0,"overflows":0}}]}})");
}

}  // namespace
}  // namespace atp::switchml
