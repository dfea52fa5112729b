// SPDX-License-Identifier: Apache-2.0
#include "endpoint/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/branch.h"
#include "endpoint/branch_receivers.h"
#include "support/packets.h"

namespace atp::endpoint {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::Address host(unsigned number) { return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4791"); }

Bytes packet_of(atp_type type) {
    atp_header header{};
    header.type = static_cast<std::uint8_t>(type);
    header.worker = 3;
    header.bitmap0 = 0x5;
    header.bitmap1 = 0x6;
    return testing::make_packet(header, {1, 2});
}

// JOIN of a whole unit, or of one member of it.
wire::Join join_of(std::uint8_t level, std::uint8_t unit, std::uint32_t members, std::uint32_t mask0,
                   std::vector<std::uint16_t> ranks, bool direct = false) {
    wire::Join join;
    join.terms.mask1 = 0x7;
    join.level = level;
    join.units = {{.unit = unit, .members = members, .mask0 = mask0, .direct = direct, .ranks = std::move(ranks)}};
    return join;
}

std::vector<wire::Address> receivers(const Downward& packet, const control::Branch& branch) {
    std::vector<wire::Address> to;
    for_each_receiver(packet, BranchReceivers(branch),
                      [&](const control::Branch::Child& child) { to.push_back(child.address); });
    return to;
}

// A root with a leaf (unit 0: ranks 0, 1), a rack whose switch is in the path (unit 1: ranks 2, 3) and a direct worker
// (unit 2: rank 4).
control::Branch root() {
    const wire::Join leaf = join_of(1, 0, 0x3, 0x3, {0, 1});
    control::Branch branch = control::Branch::of(leaf);
    branch.attach(leaf, host(1), Time{});
    branch.attach(join_of(1, 1, 0x1, 0x3, {2}), host(2), Time{});
    branch.attach(join_of(1, 1, 0x2, 0x3, {3}), host(3), Time{});
    branch.attach(join_of(1, 2, 0x1, 0x1, {4}, true), host(4), Time{});
    return branch;
}

TEST(Routing, GradientsAndProbesGoUp) {
    EXPECT_TRUE(goes_up(packet_of(ATP_TYPE_GRADIENT)));
    EXPECT_TRUE(goes_up(packet_of(ATP_TYPE_PROBE)));
    for (const atp_type type : {ATP_TYPE_ACK, ATP_TYPE_NACK, ATP_TYPE_WAIT, ATP_TYPE_FLUSH}) {
        EXPECT_FALSE(goes_up(packet_of(type))) << type;
    }
}

TEST(Routing, OtherBytesDoNotGoUp) {
    Bytes bytes = packet_of(ATP_TYPE_GRADIENT);
    EXPECT_FALSE(goes_up(std::span(bytes).first(ATP_HEADER_BYTES - 1)));
    EXPECT_FALSE(goes_up({}));
    bytes[0] = std::byte{ATP_VERSION ^ 0x01};
    EXPECT_FALSE(goes_up(bytes));
}

TEST(Routing, OnlyRequestsNameMembers) {
    const Downward result = downward_of(packet_of(ATP_TYPE_ACK));
    EXPECT_EQ(result.type, ATP_TYPE_ACK);
    EXPECT_EQ(result.worker, 3U);
    EXPECT_EQ(result.units, 0x6U);
    EXPECT_EQ(result.members, 0U);
    EXPECT_EQ(downward_of(packet_of(ATP_TYPE_NACK)).members, 0x5U);
    EXPECT_EQ(downward_of(packet_of(ATP_TYPE_FLUSH)).members, 0x5U);
}

TEST(Routing, ResultGoesToTheChildrenOfItsUnits) {
    const control::Branch branch = root();
    EXPECT_THAT(receivers({.units = 0x7}, branch), ElementsAre(host(1), host(2), host(3), host(4)));
    EXPECT_THAT(receivers({.units = 0x2}, branch), ElementsAre(host(2), host(3)));
    EXPECT_THAT(receivers({.units = 0x8}, branch), IsEmpty()) << "a unit that the job does not have";
}

TEST(Routing, PacketForOneWorkerGoesToTheChildThatLeadsToIt) {
    const control::Branch branch = root();
    EXPECT_THAT(receivers({.worker = 1}, branch), ElementsAre(host(1))) << "the leaf";
    EXPECT_THAT(receivers({.worker = 3}, branch), ElementsAre(host(3)));
    EXPECT_THAT(receivers({.worker = 4}, branch), ElementsAre(host(4)));
    EXPECT_THAT(receivers({.worker = 5}, branch), IsEmpty());
}

TEST(Routing, FlushGoesToSwitchesAlone) {
    const control::Branch branch = root();
    EXPECT_THAT(receivers({.type = ATP_TYPE_FLUSH, .units = 0x7}, branch), ElementsAre(host(1)));
    EXPECT_THAT(receivers({.type = ATP_TYPE_FLUSH, .worker = 4}, branch), IsEmpty());
}

TEST(Routing, SwitchOfARackSendsToItsMembersAndAFlushToNone) {
    const wire::Join first = join_of(0, 1, 0x1, 0x3, {2});
    control::Branch branch = control::Branch::of(first);
    branch.attach(first, host(1), Time{});
    branch.attach(join_of(0, 1, 0x2, 0x3, {3}), host(2), Time{});
    EXPECT_THAT(receivers({.units = 0x7}, branch), ElementsAre(host(1), host(2)));
    EXPECT_THAT(receivers({.worker = 3}, branch), ElementsAre(host(2)));
    EXPECT_THAT(receivers({.type = ATP_TYPE_FLUSH, .units = 0x7}, branch), IsEmpty());
}

TEST(Routing, HostOfTheServerAloneSendsAllToTheSwitchBelow) {
    const wire::Join below = join_of(ATP_LEVELS, 0, 0x3, 0x3, {0, 1});
    control::Branch branch = control::Branch::of(below);
    branch.attach(below, host(1), Time{});
    EXPECT_THAT(receivers({.units = 0x7}, branch), ElementsAre(host(1)));
    EXPECT_THAT(receivers({.worker = 9}, branch), ElementsAre(host(1)));
    EXPECT_THAT(receivers({.type = ATP_TYPE_FLUSH, .units = 0x1}, branch), ElementsAre(host(1)));
}

}  // namespace
}  // namespace atp::endpoint
