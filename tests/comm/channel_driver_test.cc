// SPDX-License-Identifier: Apache-2.0
// The driver of a channel against a switch that the test plays: a socket on the loopback.
#include "comm/channel_driver.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/branch.h"
#include "net/clock.h"
#include "net/udp_socket.h"
#include "tensor/tensors.h"
#include "wire/control.h"

namespace atp::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<net::UdpSocket> open_socket() {
    auto socket = net::UdpSocket::open({.local = *wire::Address::parse("127.0.0.1:0")});
    return socket ? *std::move(socket) : nullptr;
}

// The switch of a job of two ranks, of which rank 0 has a channel here.
class Switch {
  public:
    Switch() : socket_(open_socket()) {}

    [[nodiscard]] ChannelPlan plan() const {
        const auto membership = std::make_shared<const protocol::Membership>(*protocol::Membership::star(2));
        ChannelPlan plan;
        plan.machine.terms = {.job = 7, .token = 0x5EED, .channel = 3, .lanes = 16, .window_log2 = 3};
        plan.machine.terms.aggregators = 64, plan.machine.terms.mask1 = 1, plan.machine.terms.scale = 1e6;
        plan.machine.unit = {.unit = 0, .members = 0x1, .mask0 = 0x3, .ranks = {0}};
        plan.machine.worker.channel = endpoint::channel_config(plan.machine.terms);
        plan.machine.worker.place = membership->place(0);
        plan.machine.switch_address = socket_->local();
        plan.machine.nonce = 99;
        plan.machine.membership = membership;
        return plan;
    }
    // Receives until `until` is true, at most 5 s. `failed`: what the JOINED say; nullopt: the tree is ready.
    [[nodiscard]] bool serve(const std::function<bool()>& until) {
        const Time end = net::now() + seconds(5);
        while (!until()) {
            if (net::now() > end) return false;
            pollfd readable{.fd = socket_->descriptor(), .events = POLLIN, .revents = 0};
            static_cast<void>(::poll(&readable, 1, 10));
            receive();
        }
        return true;
    }

    std::optional<wire::Edge> failed;
    std::vector<wire::Leave> leaves;

  private:
    void receive() {
        std::array<wire::Datagram, 16> datagrams;
        const auto count = socket_->receive(datagrams);
        ASSERT_TRUE(count);
        for (std::size_t i = 0; i < *count; ++i) {
            if (const auto leave = wire::decode<wire::Leave>(datagrams[i].bytes)) leaves.push_back(*leave);
            if (const auto join = wire::decode<wire::Join>(datagrams[i].bytes)) answer(*join, *datagrams[i].from);
        }
        static_cast<void>(socket_->flush());
    }
    void answer(const wire::Join& join, const wire::Address& from) {
        wire::Joined joined{.nonce = join.nonce, .job = 7, .token = 0x5EED, .channel = 3, .epoch = join.epoch};
        joined.number = ++number_;
        joined.ready = !failed;
        if (failed) joined.edges = {*failed};
        const std::span<std::byte> room = socket_->reserve(wire::max_control_bytes);
        socket_->commit(wire::encode(joined, room), from, wire::Ecn::not_capable);
    }

    std::unique_ptr<net::UdpSocket> socket_;
    std::uint32_t number_ = 0;
};

// A broadcast that stays in flight, since no other rank sends anything.
Handle operation() {
    static std::array<std::byte, 64> values{};
    auto work = std::make_shared<Work>(Operation::broadcast,
                                       tensor::make_broadcast_tensor(values.data(), values.data(), values.size()),
                                       net::now(), never);
    work->add_slice(0, 1, 0);
    return work;
}

class ChannelOfTwo : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto thread = ChannelThread::open({});
        ASSERT_TRUE(thread);
        auto opened = ChannelDriver::open(open_socket(), node.plan(), *thread);
        ASSERT_TRUE(opened) << to_string(opened.error());
        channel = *std::move(opened);
        (*thread)->start();
        ASSERT_TRUE(node.serve([&] { return channel->wait_ready(net::now()).has_value(); }));
    }
    // A neighbour's process ended, as the switch says.
    void fail_while_busy() {
        work = operation();
        channel->submit(work, 0);
        channel->wake();
        node.failed = wire::Edge{.kind = wire::EdgeKind::member, .evidence = wire::Evidence::closed, .member = 1};
        ASSERT_TRUE(node.serve([&] { return channel->error().has_value(); }));
    }

    Switch node;
    Handle work;
    std::unique_ptr<ChannelDriver> channel;
};

TEST(ChannelThread, ChannelThatLeavesLetsTheOtherGoOn) {
    for (const bool runs : {false, true}) {
        Switch node;
        const auto thread = ChannelThread::open({});
        ASSERT_TRUE(thread);
        auto one = ChannelDriver::open(open_socket(), node.plan(), *thread);
        auto other = ChannelDriver::open(open_socket(), node.plan(), *thread);
        ASSERT_TRUE(one && other);
        if (!runs) one->reset();
        (*thread)->start();
        if (runs) one->reset();
        EXPECT_TRUE(node.serve([&] { return (*other)->wait_ready(net::now()).has_value(); }));
        EXPECT_FALSE((*other)->error());
    }
}

TEST_F(ChannelOfTwo, FailedChannelSendsItsLeaveThreeTimesWithOneEpoch) {
    fail_while_busy();
    ASSERT_TRUE(node.serve([&] { return node.leaves.size() == 3; })) << node.leaves.size();
    for (const wire::Leave& leave : node.leaves) {
        EXPECT_EQ(leave.epoch, node.leaves[0].epoch);
        ASSERT_EQ(leave.edges.size(), 1U);
        EXPECT_EQ(leave.edges[0].evidence, wire::Evidence::closed);
    }
}

TEST_F(ChannelOfTwo, StopOfAFailedChannelWaitsForItsLastLeave) {
    fail_while_busy();
    channel.reset();
    ASSERT_TRUE(node.serve([&] { return node.leaves.size() == 3; })) << node.leaves.size();
}

TEST_F(ChannelOfTwo, StopSendsOneLeaveAndEndsOperationsWithTheReason) {
    work = operation();
    channel->submit(work, 0);
    channel->wake();
    channel->stop();
    ASSERT_TRUE(work->done());
    EXPECT_EQ(work->outcome().error().reason, Reason::closed);
    EXPECT_EQ(work->outcome().error().operation, Operation::broadcast);
    ASSERT_TRUE(node.serve([&] { return !node.leaves.empty(); }));
    EXPECT_TRUE(node.leaves[0].edges.empty());
}

TEST_F(ChannelOfTwo, OperationAfterTheFailureNamesTheFirstError) {
    fail_while_busy();
    const Error first = *channel->error();
    const Handle late = operation();
    channel->submit(late, 0);
    ASSERT_TRUE(late->done());
    const Error error = late->outcome().error();
    EXPECT_EQ(error.operation, Operation::broadcast);
    EXPECT_EQ(error.reason, Reason::closed);
    EXPECT_EQ(error.peer, first.peer);
    EXPECT_NE(error.text.find("First error: " + first.text), std::string::npos) << error.text;
}

// A rank that has the error of one channel calls again before the threads of the others have ended them.
TEST(ChannelDriver, OperationAfterAnAbortIsClosedAtOnceWithTheFirstReason) {
    const Switch node;
    const auto thread = ChannelThread::open({});
    ASSERT_TRUE(thread);
    const auto channel = ChannelDriver::open(open_socket(), node.plan(), *thread);  // its thread does not run
    ASSERT_TRUE(channel) << to_string(channel.error());
    (*channel)->abort({.operation = Operation::wait, .reason = Reason::mismatched, .text = "the ranks differ"});
    (*channel)->abort({.operation = Operation::wait, .reason = Reason::closed, .text = "a later reason"});
    const Handle late = operation();
    (*channel)->submit(late, 0);
    ASSERT_TRUE(late->done());
    const Error error = late->outcome().error();
    EXPECT_EQ(error.reason, Reason::closed);
    EXPECT_TRUE(error.text.ends_with("First error: the ranks differ")) << error.text;
}

}  // namespace
}  // namespace atp::comm
