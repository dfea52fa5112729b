// SPDX-License-Identifier: Apache-2.0
// What a tree sends to the parent that a JOIN names, before and after that parent has answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t join_bytes = 288;
constexpr std::size_t most_in_10_s = 9;

wire::Join naming(const wire::Address& server, std::uint32_t of_job = job, std::uint16_t of_channel = channel) {
    return but(join_of_member(0, 1, 0), [&](wire::Join& join) {
        join.terms.server = endpoint_of(server);
        join.terms.job = of_job, join.terms.channel = of_channel;
    });
}

// A tree whose parents answer only what the test says.
struct Silent : Tree {
    explicit Silent(const JoinTreeConfig& config = {}) : Tree(config) { parents_answer = false; }
};

// When such a tree sent how much to one host.
class Watched : public Silent {
  public:
    explicit Watched(const wire::Address& host, const JoinTreeConfig& config = {}) : Silent(config), host_(host) {}

    // Members repeat their JOINs every 50 ms for so long.
    void join_for(Duration duration, const std::vector<wire::Join>& joins) {
        for (const Time end = now + duration; now < end; pass(milliseconds(50))) {
            for (const wire::Join& each : joins) {
                join(each, worker(0));
                arrived_ += join_bytes;
                note();
            }
        }
        note();
    }
    void note() {
        std::array<std::byte, ATP_MAX_PACKET_BYTES> room{};
        for (const auto& transmit : sent) {
            if (transmit.to.with_port(0) != host_.with_port(0)) continue;
            times_.push_back(now);
            bytes_ += wire::encode(transmit.message, room, transmit.padded_bytes);
        }
        sent.clear();
    }
    [[nodiscard]] std::size_t most_in(Duration window) const {
        std::size_t most = 0;
        for (std::size_t first = 0, end = 0; first < times_.size(); ++first) {
            while (end < times_.size() && times_[end] - times_[first] < window) ++end;
            most = std::max(most, end - first);
        }
        return most;
    }
    [[nodiscard]] std::size_t messages() const { return times_.size(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t arrived() const { return arrived_; }

  private:
    wire::Address host_;
    std::vector<Time> times_;
    std::size_t bytes_ = 0;
    std::size_t arrived_ = 0;
};

std::vector<wire::Join> jobs_that_name(const wire::Address& server, unsigned jobs, std::uint16_t channels) {
    std::vector<wire::Join> joins;
    for (std::uint32_t of_job = 1; of_job <= jobs; ++of_job) {
        for (std::uint16_t of_channel = 0; of_channel < channels; ++of_channel) {
            joins.push_back(naming(server.with_port(static_cast<std::uint16_t>(5000 + of_job)), of_job, of_channel));
        }
    }
    return joins;
}

TEST(UnprovenParent, H97_GetsNoMoreBytesThanTheJoinThatNamesIt) {
    Watched tree(host(66));
    tree.join(naming(host(66)), worker(0));
    tree.pass(milliseconds(2900));
    tree.note();
    EXPECT_EQ(tree.messages(), 1U);
    EXPECT_LE(tree.bytes(), join_bytes);
}

TEST(UnprovenParent, H97_GetsNineQuestionsInTenSecondsFromAMemberThatRepeatsItsJoin) {
    Watched tree(host(66));
    tree.join_for(seconds(40), {naming(host(66))});
    EXPECT_LE(tree.bytes(), tree.arrived());
    EXPECT_LE(tree.bytes(), tree.messages() * join_bytes);
    EXPECT_LE(tree.most_in(seconds(10)), most_in_10_s);
    EXPECT_GE(tree.messages(), 15U) << "the switch goes on asking";
}

TEST(UnprovenParent, H97_GetsNineQuestionsInTenSecondsFromAllChannelsOfAllTrees) {
    JoinTreeConfig config;
    config.pace = std::make_shared<QuestionPace>(Secret{1, 2});
    Watched tree(host(66), config);
    Watched another(host(66), config);
    const auto joins = jobs_that_name(host(66), 64, 4);
    std::size_t in_10_s = 0;
    for (int step = 0; step < 200; ++step) {
        tree.join_for(milliseconds(50), joins);
        another.join_for(milliseconds(50), joins);
        in_10_s = tree.messages() + another.messages();
    }
    EXPECT_LE(in_10_s, most_in_10_s);
    EXPECT_GE(in_10_s, most_in_10_s - 1) << "one of them may ask as often as one channel alone";
}

TEST(UnprovenParent, H97_GetsQuestionsOfOtherHostsInTurn) {
    Silent tree;
    const wire::Join greedy = naming(host(66).with_port(9), 1);
    const wire::Join honest = naming(host(66), 2);
    for (int step = 0; step < 60 * 20 && tree.sent_to<wire::Join>(host(66)).size() < 5; ++step) {
        tree.join(greedy, worker(1));
        tree.join(honest, worker(2));
        tree.pass(milliseconds(50));
    }
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 5U) << "a port that never answers gets no more than its share";
}

TEST(UnprovenParent, H97_QuestionHasOnlyWhatARetryRepeats) {
    Silent rack(below(host(1)));
    rack.join(but(join_of_member(0, 1, 0, 0, 0x3),
                  [](wire::Join& join) {
                      join.statements = {{.count = 1, .text = std::string(90, 'x')}};
                      join.begun = true;
                  }),
              worker(0));
    const auto questions = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(questions.size(), 1U);
    EXPECT_EQ(questions[0].cookie, 0U);
    EXPECT_TRUE(questions[0].statements.empty());
    EXPECT_LE(bytes_of(questions[0]), join_bytes);
    rack.retry(0xC001, host(1));
    const auto joins = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(joins.size(), 2U);
    EXPECT_EQ(joins[1].cookie, 0xC001U);
    EXPECT_EQ(joins[1].statements.size(), 1U);
}

TEST(UnprovenParent, H97_FullQuestionOfTheLastSwitchFitsItsLength) {
    Silent root;
    for (std::uint8_t unit = 0; unit < 32; ++unit) {
        const auto first = static_cast<std::uint16_t>(32 * unit);
        root.join(but(join_of_unit(unit, first, 31, 0xFFFFFFFF),
                      [](wire::Join& join) {
                          join.terms.server = endpoint_of(host(66));
                          join.terms.lanes = 1024;
                      }),
                  host(unit));
    }
    const auto questions = root.sent_to<wire::Join>(host(66));
    ASSERT_EQ(questions.size(), 1U);
    std::array<std::byte, ATP_MAX_PACKET_BYTES> room{};
    const std::size_t size = wire::encode(questions[0], room);
    EXPECT_LE(size, join_bytes);
    EXPECT_TRUE(wire::decode<wire::Join>(std::span(room).first(size))) << "a parent understands it";
}

TEST(UnprovenParent, RetriesOfAnotherHostSendNothing) {
    Silent tree;
    tree.join(naming(host(66)), worker(0));
    tree.forget();
    for (std::uint64_t cookie = 1; cookie <= 100; ++cookie) tree.retry(cookie, host(99));
    EXPECT_TRUE(tree.sent.empty());
    EXPECT_EQ(tree.tree.counters().forged, 100U);
}

TEST(UnprovenParent, AnswersOfAnotherHostChangeNothing) {
    Silent tree;
    tree.join(naming(host(66)), worker(0));
    tree.joined(true, host(99));
    tree.refused(Refusal::restarted, host(99));
    EXPECT_EQ(tree.tree.counters().forged, 2U);
    ASSERT_NE(tree.tree.find(key), nullptr);
    EXPECT_FALSE(tree.tree.find(key)->ready());
}

TEST(UnprovenParent, AnswerWithTheNonceOfAnotherChannelChangesNothing) {
    Silent tree;
    tree.join(naming(host(66)), worker(0));
    tree.join(naming(host(77), job, channel + 1), worker(0));
    const std::uint64_t own = tree.sent_to<wire::Join>(host(66)).at(0).nonce;
    const std::uint64_t of_another = tree.sent_to<wire::Join>(host(77)).at(0).nonce;
    EXPECT_NE(own, of_another);
    tree.tree.handle_joined(
        {.nonce = of_another, .job = job, .token = token, .channel = channel, .epoch = 1, .number = 1, .ready = true},
        host(66), tree.now);
    EXPECT_FALSE(tree.tree.find(key)->ready());
    EXPECT_EQ(tree.tree.counters().forged, 1U);
}

TEST(ProvenParent, OneAnswerLetsAllChannelsAskAtOnce) {
    Silent tree;
    for (std::uint16_t of_channel = 0; of_channel < 8; ++of_channel) {
        tree.join(naming(host(66), job, of_channel), worker(0));
    }
    ASSERT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 1U);
    const wire::Join question = tree.sent_to<wire::Join>(host(66))[0];
    tree.tree.handle_retry(
        {.nonce = question.nonce, .job = job, .token = token, .channel = question.terms.channel, .cookie = 0xC001},
        host(66), tree.now);
    tree.pass(milliseconds(1));
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 9U) << "seven further questions, and the JOIN with the cookie";
}

TEST(ProvenParent, ThatStartsLateIsFoundWithinFourSeconds) {
    Watched tree(host(66));
    const auto joins = jobs_that_name(host(66), 64, 4);
    tree.join_for(seconds(30), joins);
    const Time started = tree.now;
    const std::size_t before = tree.messages();
    while (tree.messages() == before && tree.now - started < seconds(5)) tree.join_for(milliseconds(50), joins);
    EXPECT_LT(tree.now - started, seconds(4));
}

TEST(ProvenParent, ManyRetriesCauseOneJoinIn50Ms) {
    Silent tree;
    tree.join(naming(host(66)), worker(0));
    tree.retry(1, host(66));
    ASSERT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 2U);
    for (std::uint64_t cookie = 2; cookie <= 100; ++cookie) tree.retry(cookie, host(66));
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 2U);
    tree.pass(milliseconds(50));
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 3U);
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).back().cookie, 100U);
}

// The JOIN with the cookie brings the reason why the job failed.
TEST(ProvenParent, H26_ThatRestartedGetsAJoinWithItsCookieAtOnce) {
    Silent tree;
    tree.join(naming(host(66)), worker(0));
    tree.retry(1, host(66));
    tree.joined(true, host(66));
    tree.forget();
    while (tree.sent_to<wire::Join>(host(66)).empty()) tree.pass(milliseconds(10));
    tree.retry(2, host(66));
    ASSERT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 2U);
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).back().cookie, 2U);
    EXPECT_TRUE(tree.sent_to<wire::Join>(host(66)).back().begun);
    for (std::uint64_t cookie = 3; cookie <= 100; ++cookie) tree.retry(cookie, host(66));
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 2U);
    tree.pass(milliseconds(50));
    EXPECT_EQ(tree.sent_to<wire::Join>(host(66)).size(), 3U);
}

TEST(ProvenParent, ThatFallsSilentIsAskedAsAStrangerAfterTenSeconds) {
    Watched tree(host(66));
    tree.join_for(milliseconds(50), {naming(host(66))});
    tree.joined(true, host(66));
    tree.join_for(2 * tree.tree.config().hold, {begun(naming(host(66)))});
    EXPECT_GT(tree.messages(), 30U) << "after a hold time, every 50 ms, with the edge that failed";
    tree.join_for(QuestionPace::memory - 2 * tree.tree.config().hold, {begun(naming(host(66)))});
    const std::size_t before = tree.messages();
    tree.join_for(seconds(30), {begun(naming(host(66)))});
    EXPECT_LE(tree.messages() - before, 3 * most_in_10_s);
}

}  // namespace
}  // namespace atp::control
