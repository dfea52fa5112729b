// SPDX-License-Identifier: Apache-2.0
// A team with a valid key that knows all about another team's job, and sends from a host of its own.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "control/member_session.h"
#include "messages.h"
#include "outsider.h"
#include "site.h"

namespace atp::test {
namespace {

using control::MemberSession;

class OtherTenant : public Site {
  protected:
    // Joins as speech with this JOIN, and returns the answer to the JOIN with a code.
    [[nodiscard]] Bytes join(const wire::Join& join, const SwitchProcess& node) {
        const auto key = std::make_shared<const crypto::TenantKey>(speech_);
        session_ = std::make_unique<MemberSession>(std::vector{control::MemberKey{.key = key}}, join.nonce,
                                                   control::key_of(join));
        wire::Join asking = join;
        asking.cookie = 0;
        for (int attempt = 0; attempt < 3; ++attempt, asking.epoch += 10) {
            say(asking, node);
            for (Bytes answer = outsider_.receive(2000); !answer.empty(); answer = outsider_.receive(500)) {
                const auto retry = wire::decode<wire::Retry>(answer);
                if (!retry) return answer;
                if (session_->handle_message(answer) == MemberSession::Belief::believed) {
                    asking.cookie = retry->cookie;
                    say(asking, node);
                }
            }
        }
        return {};
    }
    void say(const wire::JoiningMessage& message, const SwitchProcess& node) {
        Bytes bytes(2048);
        bytes.resize(session_->encode(message, bytes, wire::least_question_bytes));
        outsider_.send(bytes, node.address());
    }

    Outsider outsider_;
    std::unique_ptr<MemberSession> session_;  // of the last join()
};

TEST_F(OtherTenant, CannotTakeThePlacesOfAJobThatItKnows) {
    const SwitchProcess node(asking());
    Wiretap tap(node.address());
    const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    for (const auto& [client, shown] : tap.last<wire::Join>()) {
        for (const std::uint64_t nonce : {shown.nonce, shown.nonce + 1}) {
            wire::Join taken = shown;
            taken.nonce = nonce;
            taken.epoch += 1000;
            const auto refused = wire::decode<wire::Refused>(join(taken, node));
            ASSERT_TRUE(refused);
            EXPECT_EQ(refused->reason, wire::Refusal::key);
            EXPECT_EQ(refused->text, "no such job or key") << "it does not learn that the job exists";
            const wire::Leave leave{.nonce = nonce,
                                    .job = taken.terms.job,
                                    .token = taken.terms.token,
                                    .epoch = taken.epoch + 1000,
                                    .member = 1};
            say(leave, node);
            outsider_.say(leave, node.address());
        }
        expect_sums(ranks, 2);
    }
    EXPECT_EQ(node.members_of(*ranks[0]->formation().job), 2U);
    EXPECT_EQ(node.report().shards[0].tree.left, 0U);
    // Its own job is served.
    wire::Join own = join_of({.job = 5, .token = 6, .nonce = 7});
    EXPECT_TRUE(wire::decode<wire::Joined>(join(own, node)));
}

TEST_F(OtherTenant, ChangesNoSumAndEndsNoJobWithPacketsFromItsOwnHost) {
    const SwitchProcess node(asking());
    Wiretap tap(node.address());
    const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    expect_sums(ranks, 1);
    std::vector<wire::Address> targets = open_ports();
    targets.push_back(node.address());
    const wire::Join shown = tap.last<wire::Join>()[0].second;
    std::atomic<unsigned> sent{0};
    {
        const std::jthread attacker([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                const std::uint32_t seq = tap.last_gradient()->seq + sent % 8;
                const Target target{.job = shown.terms.job,
                                    .token = shown.terms.token,
                                    .nonce = shown.nonce,
                                    .epoch = shown.epoch + 1000,
                                    .seq = seq};
                for (const wire::Address& to : targets) {
                    for (const Forgery& forgery : packet_forgeries(target, true)) outsider_.send(forgery.bytes, to);
                    for (const Forgery& forgery : control_forgeries(target)) outsider_.send(forgery.bytes, to);
                }
                ++sent;
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
        EXPECT_TRUE(eventually([&] {
            expect_sums(ranks, 2);
            return sent > 200 || HasFailure();
        }));
    }
    EXPECT_EQ(node.members_of(shown.terms.job), 2U);
    EXPECT_GT(node.report().shards[0].packets.strangers, 0U);
    expect_new_job(to_string(node.address()), options_of("speech"));
}

}  // namespace
}  // namespace atp::test
