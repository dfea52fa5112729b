// SPDX-License-Identifier: Apache-2.0
#include "control/switch_codes.h"

#include <gtest/gtest.h>

#include "control/codes_fixture.h"

namespace atp::control {
namespace {

TEST(SwitchCodes, MemberAndSwitchOfOneTenantBelieveEachOther) {
    Joined pair;
    const auto check = pair.node.check_join(pair.member.join());
    EXPECT_TRUE(check.believed);
    ASSERT_NE(check.proof.tenant, nullptr);
    EXPECT_EQ(check.proof.tenant->name, "vision");
    EXPECT_EQ(check.proof.sender, nullptr);
    EXPECT_EQ(check.proof.key_id, 7U);
    EXPECT_EQ(pair.member.hear(pair.node.encoded(refused_message())), Belief::believed);
    EXPECT_TRUE(pair.node.check_leave(pair.member.leave()));
}

TEST(SwitchCodes, OpenSwitchSendsAndTakesMessagesWithoutCodes) {
    Switch open(first_start, nullptr);
    for (const wire::JoiningMessage& message : std::initializer_list<wire::JoiningMessage>{
             a_join, joined_message(), refused_message(), Member::leave_of(nonce, 1)}) {
        Bytes plain(2048);
        plain.resize(wire::encode(message, plain));
        EXPECT_EQ(open.encoded(message), plain);
    }
    const auto check = open.check_join(open.encoded(a_join));
    EXPECT_TRUE(check.believed);
    EXPECT_EQ(check.proof.tenant, nullptr);
    EXPECT_EQ(open.codes.introduction().boot, 0U);
    EXPECT_EQ(open.codes.cookie_period(), Gatekeeper::cookie_period);
}

TEST(SwitchCodes, H100_RecordedMessagesCountInNoOtherSession) {
    Joined old;
    const Bytes join = old.member.join();
    const Bytes leave = old.member.leave();
    const Bytes refused = old.node.encoded(refused_message());

    Switch restarted(second_start);
    EXPECT_FALSE(restarted.check_join(join).believed) << "another boot";
    Member next(vision);
    EXPECT_EQ(next.hear(restarted.retry()), Belief::believed);
    EXPECT_TRUE(restarted.check_join(next.join()).believed);
    EXPECT_NE(next.hear(old.answer), Belief::believed);
    EXPECT_NE(next.hear(refused), Belief::believed);
    EXPECT_FALSE(restarted.check_leave(leave));

    Member another(vision, nonce + 1);
    EXPECT_EQ(another.hear(old.node.retry()), Belief::stray) << "it names another nonce";
    EXPECT_NE(another.hear(old.answer), Belief::believed);
}

TEST(SwitchCodes, H100_SwitchTellsItsOperatorWhatIsWrongWithAKey) {
    Switch node;
    const auto problem_of = [&](Member& member) {
        static_cast<void>(member.hear(node.retry()));
        const auto check = node.check_join(member.join());
        EXPECT_FALSE(check.believed);
        EXPECT_EQ(check.proof.tenant, nullptr);
        return check.problem;
    };
    Member without_session(vision);
    EXPECT_EQ(node.check_join(without_session.join()).problem, "it has no key");
    Member unknown(tenant_key(10, "vision"));
    EXPECT_EQ(problem_of(unknown), "key 10 is unknown");
    crypto::TenantKey wrong = vision;
    wrong.key.bytes().back() ^= std::byte{1};
    Member guesses(wrong);
    EXPECT_EQ(problem_of(guesses), "its code is not of key 7");
    Member renamed(speech);
    static_cast<void>(renamed.hear(Switch(first_start, tenants_at("spine")).retry()));
    EXPECT_EQ(node.check_join(renamed.join()).problem, "key 8 is of another switch");
}

// ------------------------------------------------------------------------------------------------ A switch as a member

wire::Join join_upwards() {
    wire::Join join = a_join;
    join.level = 1;
    join.units.front().members = join.units.front().mask0;
    join.units.front().ranks = {0, 1, 2};
    join.nonce = 0x5557;
    join.cookie = 1;
    join.epoch = 1;
    return join;
}

// What `parent` finds of the JOIN that `leaf` sends it for a member of tenant vision.
SwitchCodes::JoinCheck ask_parent(Switch& leaf, Switch& parent) {
    Member member(vision);
    static_cast<void>(member.hear(leaf.retry()));
    EXPECT_TRUE(leaf.check_join(member.join()).believed);
    const wire::Join join = join_upwards();
    static_cast<void>(leaf.encoded(join));
    const auto retry = parent.gatekeeper.handle_join(join, member_address, parent.now);
    const auto check = leaf.codes.check_answer(parent.encoded(*retry), leaf.now);
    EXPECT_TRUE(check.believed);
    return parent.check_join(leaf.encoded(join));
}

TEST(SwitchCodes, LeafJoinsWithItsKeyForATenantOfBoth) {
    Switch leaf(first_start, tenants_at("leaf"), shared(key_for_switch(fabric, "spine")));
    Switch parent(second_start, tenants_at("spine"));
    const auto check = ask_parent(leaf, parent);
    EXPECT_TRUE(check.believed) << check.problem;
    ASSERT_NE(check.proof.tenant, nullptr);
    EXPECT_EQ(check.proof.tenant->name, "vision");
    ASSERT_NE(check.proof.sender, nullptr);
    EXPECT_EQ(check.proof.sender->name, "fabric");
    wire::Joined answer = joined_message();
    answer.nonce = join_upwards().nonce;
    EXPECT_TRUE(leaf.codes.check_answer(parent.encoded(answer), leaf.now).believed);
    EXPECT_FALSE(leaf.codes.check_answer(testing::encoded(answer), leaf.now).believed);
}

TEST(SwitchCodes, H100_OnlyAFabricJoinsForOthers) {
    Switch leaf(first_start, tenants_at("leaf"), shared(key_for_switch(speech, "spine")));
    Switch parent(second_start, tenants_at("spine"));
    const auto check = ask_parent(leaf, parent);
    EXPECT_FALSE(check.believed);
    EXPECT_EQ(check.problem, "tenant speech may not join for others");
}

// Its JOINEDs name one tenant to switches in the path.
TEST(SwitchCodes, H103_LaterJoinsOfASessionNameTheSameTenant) {
    Switch node;
    Member member(vision);
    Member lies(vision, nonce, speech.id);
    const Bytes retry = node.retry();
    for (Member* each : {&member, &lies}) static_cast<void>(each->hear(retry));
    EXPECT_TRUE(node.check_join(member.join()).believed);
    EXPECT_EQ(node.check_join(lies.join()).problem, "it names another tenant than before");
    EXPECT_TRUE(node.check_join(member.join()).believed);
}

TEST(SwitchCodes, ServerInARankKnowsTheKeyOfTheSwitchThatAsks) {
    Switch leaf;
    Switch server(second_start,
                  std::make_shared<const Tenants>(std::vector{Tenant{.name = "vision", .keys = {vision}}}));
    EXPECT_EQ(server.codes.introduction().name, "*");
    const auto check = ask_parent(leaf, server);
    EXPECT_TRUE(check.believed) << check.problem;
    Member worker(vision);
    EXPECT_EQ(worker.hear(server.retry()), Belief::believed);
    EXPECT_TRUE(server.check_join(worker.join()).believed) << "a worker of the job too";
}

TEST(SwitchCodes, H101_ParentWithoutACodeEndsAChannelOnlyIfItNeverProvesItself) {
    Switch leaf(first_start, tenants_at("leaf"), shared(key_for_switch(fabric, "spine")));
    Switch parent(second_start, tenants_at("spine"));
    Switch open(second_start, nullptr);
    const wire::Join join = join_upwards();
    static_cast<void>(leaf.encoded(join));
    const auto open_retry = open.gatekeeper.handle_join(join, member_address, open.now);
    auto check = leaf.codes.check_answer(open.encoded(*open_retry), leaf.now);
    EXPECT_FALSE(check.believed);
    EXPECT_EQ(check.problem, "");
    leaf.now += Switch::hold;
    check = leaf.codes.check_answer(open.encoded(*open_retry), leaf.now);
    EXPECT_EQ(check.problem.substr(0, 27), "the switch asks for no key:");
    static_cast<void>(ask_parent(leaf, parent));
    wire::Joined answer = joined_message();
    answer.nonce = join.nonce;
    EXPECT_TRUE(leaf.codes.check_answer(parent.encoded(answer), leaf.now).believed);
    leaf.now += 2 * Switch::hold;
    EXPECT_EQ(leaf.codes.check_answer(open.encoded(*open_retry), leaf.now).problem, "");
}

// ------------------------------------------------------------------------------------------------------------- Bounds

TEST(SwitchCodes, SessionsOfRefusedJoinsAreForgottenSoon) {
    Switch node;
    Member member(vision);
    static_cast<void>(member.hear(node.retry()));
    const Bytes bytes = member.join();
    const auto join = wire::decode<wire::Join>(bytes);
    EXPECT_TRUE(node.codes.check_join(*join, bytes, node.now).believed);
    node.codes.settle(*join, false, node.now);
    EXPECT_EQ(node.codes.sessions(), 1U);
    EXPECT_EQ(member.hear(node.encoded(refused_message())), Belief::believed);
    node.now += milliseconds(500);
    Member other(vision, nonce + 1);
    static_cast<void>(other.hear(node.retry(nonce + 1)));
    EXPECT_TRUE(node.check_join(other.join()).believed);
    EXPECT_EQ(node.codes.sessions(), 1U);
}

TEST(SwitchCodes, SessionOfAKeyThatWasRemovedGoesOn) {
    Joined pair;
    pair.node.codes.set_tenants(std::make_shared<const Tenants>(
        std::vector{Tenant{.name = "speech", .keys = {key_for_switch(speech, "leaf")}}}));
    EXPECT_TRUE(pair.node.check_join(pair.member.join()).believed);
    Member late(vision, nonce + 1);
    static_cast<void>(late.hear(pair.node.retry(nonce + 1)));
    EXPECT_FALSE(pair.node.check_join(late.join()).believed);
}

}  // namespace
}  // namespace atp::control
