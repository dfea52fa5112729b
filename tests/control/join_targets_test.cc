// SPDX-License-Identifier: Apache-2.0
// To which addresses a JOIN may make a switch send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

wire::Join naming(const std::string& server) {
    return but(join_of_member(0, 1, 0),
               [&](wire::Join& join) { join.terms.server = endpoint_of(*wire::Address::parse(server)); });
}

wire::Join with_group(const std::string& group) {
    return but(join_of_member(0, 1, 0),
               [&](wire::Join& join) { join.terms.group = endpoint_of(*wire::Address::parse(group)); });
}

JoinTreeConfig with_groups() {
    JoinTreeConfig config;
    config.groups = *parse_ranges("239.192.0.0/16");
    return config;
}

TEST(JoinTargets, AddressThatIsNoOtherHostIsRefusedAsServer) {
    JoinTreeConfig config;
    config.self = host(1);
    for (const char* const server : {"0.0.0.0:4790", "255.255.255.255:4790", "239.192.0.1:4792", "[::]:4790",
                                     "[ff02::1]:4790", "10.0.0.9:0", "10.0.0.1:4791"}) {
        Tree tree(config);
        tree.join(naming(server), worker(0));
        tree.expect_refused(worker(0), Refusal::unsupported, server);
        EXPECT_EQ(tree.tree.channels(), 0U);
    }
}

TEST(JoinTargets, OnlyAMemberOfThisHostNamesALoopbackAddress) {
    Tree tree;
    tree.join(naming("127.0.0.1:53"), worker(0));
    tree.expect_refused(worker(0), Refusal::unsupported, "the address of an interface");
    tree.join(naming("127.0.0.1:4790"), *wire::Address::parse("127.0.0.1:40000"));
    EXPECT_EQ(tree.tree.channels(), 1U);
}

TEST(JoinTargets, ServerOutsideTheListIsRefused) {
    JoinTreeConfig config;
    config.servers = *parse_ranges("10.0.0.0/24");
    Tree tree(config);
    tree.join(naming("10.0.1.1:4790"), worker(0));
    tree.expect_refused(worker(0), Refusal::unsupported, "--servers");
    tree.join(naming("10.0.0.7:4790"), worker(0));
    EXPECT_EQ(tree.tree.channels(), 1U);
}

TEST(JoinTargets, ListsChangeForJobsThatJoinLater) {
    Tree tree;
    tree.join(naming("10.0.1.1:4790"), worker(0));
    EXPECT_EQ(tree.tree.channels(), 1U);
    tree.tree.set_hosts({.clients = {}, .servers = *parse_ranges("192.0.2.0/24"), .groups = {}});
    tree.join(but(naming("10.0.1.1:4790"), [](wire::Join& join) { join.terms.job += 1; }), worker(0));
    tree.expect_refused(worker(0), Refusal::unsupported, "--servers");
    EXPECT_EQ(tree.tree.channels(), 1U) << "the first job stays";
}

TEST(JoinTargets, RootOutsideTheListIsRefusedAndTheParentOfTheSwitchIsNot) {
    JoinTreeConfig config = below(host(1));
    config.servers = *parse_ranges("192.0.2.0/24");
    Tree rack(config);
    const wire::Join join = join_of_member(0, 1, 0, 0, 0x3);
    rack.join(but(join, [](wire::Join& named) { named.terms.root = endpoint_of(host(2)); }), worker(0));
    rack.expect_refused(worker(0), Refusal::unsupported, "--servers");
    rack.join(join, worker(0));
    EXPECT_EQ(rack.sent_to<wire::Join>(host(1)).size(), 1U);
}

TEST(JoinTargets, GroupIsRefusedUnlessTheSwitchMaySendToIt) {
    Tree closed;
    closed.join(with_group("239.192.0.1:4792"), worker(0));
    closed.expect_refused(worker(0), Refusal::unsupported, "--groups");
    for (const char* const group : {"239.193.0.1:4792", "224.0.0.1:4792", "239.192.0.1:5353"}) {
        Tree tree(with_groups());
        tree.join(with_group(group), worker(0));
        tree.expect_refused(worker(0), Refusal::unsupported, group);
    }
    Tree open(with_groups());
    open.join(with_group("239.192.0.1:4792"), worker(0));
    EXPECT_EQ(open.tree.channels(), 1U);
}

TEST(JoinTargets, SwitchThatDoesNotSendToTheGroupTakesAnyGroup) {
    Tree rack(below(host(1)));
    rack.join(but(join_of_member(0, 1, 0, 0, 0x3),
                  [](wire::Join& join) { join.terms.group = endpoint_of(*wire::Address::parse("239.9.9.9:4792")); }),
              worker(0));
    EXPECT_EQ(rack.tree.channels(), 1U);
}

}  // namespace
}  // namespace atp::control
