// SPDX-License-Identifier: Apache-2.0
#include "comm/host_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <vector>

namespace atp::comm {
namespace {

// The memory of ranks 4, 7 and 9 of a job, as each of them sees it. Rank 7 is process 4711.
class HostText : public ::testing::Test {
  protected:
    static constexpr shm::HostShape shape{.ranks = 3, .slots = 1, .chunk_lanes = 64};

    void SetUp() override {
        auto created = shm::SharedMemory::create(shape.bytes());
        ASSERT_TRUE(created);
        for (unsigned rank = 0; rank < shape.ranks; ++rank) {
            auto mapped = shm::SharedMemory::adopt(net::Descriptor(dup(created->descriptor())), shape.bytes());
            ASSERT_TRUE(mapped);
            memory.push_back(std::make_unique<shm::HostMemory>(*std::move(mapped), shape, rank));
        }
        memory[1]->answer(1, 4711);
    }

    std::vector<std::uint16_t> ranks{4, 7, 9};
    std::vector<std::unique_ptr<shm::HostMemory>> memory;
};

TEST_F(HostText, LostRankIsNamedWithItsProcessAndReason) {
    struct Row {
        shm::Presence presence;
        std::string note;
        Error expected;
    };
    const Error of_network{.operation = Operation::wait,
                           .reason = Reason::timed_out,
                           .peer = "rank 2",
                           .text = "it is\nsilent",
                           .ranks = {2},
                           .address = "10.0.0.1:4790"};
    const Error no_reason{.reason = Reason::failed, .peer = "rank 2", .text = "no such reason", .ranks = {2}};
    const Error of_rank{.operation = Operation::wait, .reason = Reason::mismatched, .text = "its calls differ"};
    const std::vector<Row> rows{
        {shm::Presence::ended,
         "",
         {.reason = Reason::closed, .text = "the process 4711 of rank 7, on this host, has ended"}},
        {shm::Presence::ended,
         note_of(of_rank),
         {.reason = Reason::closed, .text = "rank 7 (process 4711) ended the job: its calls differ"}},
        {shm::Presence::left, "", {.reason = Reason::closed, .text = "rank 7 (process 4711) left the job"}},
        {shm::Presence::ended, note_of(of_network), of_network},
        {shm::Presence::ended, "4096\nrank 2\n2\n\nno such reason", no_reason},
    };
    for (const Row& row : rows) {
        memory.clear();
        SetUp();
        memory[1]->set_presence(1, row.presence, row.note);
        const Error error = error_of_lost(*memory[0], ranks, 1);
        EXPECT_EQ(error.operation, Operation::wait);
        EXPECT_EQ(error.reason, row.expected.reason);
        EXPECT_EQ(error.peer, row.expected.peer.empty() ? "rank 7" : row.expected.peer);
        EXPECT_EQ(error.text, row.expected.text);
        EXPECT_EQ(error.ranks, row.expected.ranks.empty() ? std::vector<std::uint32_t>{7} : row.expected.ranks);
        EXPECT_EQ(error.address, row.expected.address);
    }
}

TEST_F(HostText, DifferentCallsAreBothNamed) {
    memory[0]->state_call(0, 1, "barrier as call 3");
    memory[2]->state_call(0, 2, "broadcast as call 3");
    const Error error = error_of_mismatch(*memory[0], ranks, {.slot = 0, .rank = 2});
    EXPECT_EQ(error.reason, Reason::mismatched);
    EXPECT_EQ(error.peer, "rank 9");
    EXPECT_EQ(error.ranks, std::vector<std::uint32_t>{9});
    EXPECT_EQ(error.text,
              "rank 9 called broadcast as call 3, but rank 4 called barrier as call 3: make all ranks call the same "
              "sequence with equal types and sizes");
}

TEST_F(HostText, SilentRanksAreListedWithoutThisOne) {
    const std::vector<std::string> silent{"ranks 7, 9", "rank 9", ""};
    for (const std::string& expected : silent) {
        const Error error = error_of_silence(*memory[0], ranks, 0);
        EXPECT_EQ(error.reason, Reason::timed_out);
        EXPECT_EQ(error.peer, expected);
        EXPECT_EQ(list_of_ranks(error.ranks), expected);
        EXPECT_EQ(error.text.find("raise the timeout") != std::string::npos, expected.empty()) << error.text;
        memory[1 + (expected == "rank 9" ? 1 : 0)]->arrive(0);
    }
}

}  // namespace
}  // namespace atp::comm
