// SPDX-License-Identifier: Apache-2.0
#include "switchd/shard_outbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace atp::switchd {
namespace {

constexpr std::uint32_t most_packets = 4;

// A queue of four packets. flush() hands them to a kernel that takes `accepts` packets more.
class FakeTransport final : public net::Transport {
  public:
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return queued == most_packets ? std::span<std::byte>() : std::span(room).first(max_bytes);
    }
    void commit(std::size_t, const wire::Address&, wire::Ecn) override { ++queued; }
    [[nodiscard]] bool borrow(std::span<const std::byte>, const wire::Address&, wire::Ecn) override { return take(); }
    [[nodiscard]] bool repeat(const wire::Address&) override { return take(); }
    net::Flush flush() override {
        ++flushes;
        const std::uint32_t taken = std::min(queued, accepts);
        accepts -= taken;
        queued -= taken;
        return {.packets = taken, .waiting = queued};
    }
    [[nodiscard]] std::uint32_t waiting() const override { return queued; }
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram>) override { return std::size_t{0}; }
    [[nodiscard]] bool has_more() const override { return false; }
    void reach_group(const wire::Address&, const wire::Address&) override {}
    void forget_group(const wire::Address&) override {}
    [[nodiscard]] const wire::Address& local() const override { return address; }
    [[nodiscard]] int descriptor() const override { return -1; }
    [[nodiscard]] const net::UdpReport& report() const override { return report_; }
    [[nodiscard]] const net::UdpCounters& counters() const override { return counters_; }

    std::uint32_t queued = 0;
    std::uint32_t accepts = 1000;
    unsigned flushes = 0;
    std::array<std::byte, 64> room{};
    wire::Address address;

  private:
    bool take() {
        if (queued == most_packets) return false;
        ++queued;
        return true;
    }

    net::UdpReport report_;
    net::UdpCounters counters_;
};

struct ShardOutboxTest : ::testing::Test {
    bool borrow() { return outbox.borrow(bytes, to, wire::Ecn::capable_0); }

    FakeTransport transport;
    ShardOutbox outbox{transport, most_packets};
    std::array<std::byte, 8> bytes{};
    wire::Address to;
};

TEST_F(ShardOutboxTest, FullQueueIsFlushedForAFurtherPacket) {
    for (std::uint32_t i = 0; i < most_packets; ++i) ASSERT_TRUE(borrow());
    EXPECT_EQ(transport.flushes, 0U);
    EXPECT_TRUE(borrow());
    EXPECT_EQ(transport.flushes, 1U);
    EXPECT_EQ(transport.queued, 1U);
    for (std::uint32_t i = 1; i < most_packets; ++i) ASSERT_TRUE(borrow());
    EXPECT_FALSE(outbox.reserve(8).empty());
    EXPECT_EQ(transport.flushes, 2U);
    EXPECT_FALSE(outbox.blocked());
}

TEST_F(ShardOutboxTest, PacketIsNotRepeatedAcrossAFlush) {
    EXPECT_FALSE(outbox.repeat(to)) << "there is no last packet";
    ASSERT_TRUE(borrow());
    EXPECT_TRUE(outbox.repeat(to));
    outbox.flush();
    EXPECT_FALSE(outbox.repeat(to));
    ASSERT_FALSE(outbox.reserve(8).empty());
    outbox.commit(8, to, wire::Ecn::capable_0);
    EXPECT_TRUE(outbox.repeat(to));
}

TEST_F(ShardOutboxTest, ExpectedCopiesFindRoom) {
    ASSERT_TRUE(borrow());
    outbox.expect(3);
    EXPECT_EQ(transport.flushes, 0U) << "they fit";
    outbox.expect(4);
    EXPECT_EQ(transport.flushes, 1U);
    EXPECT_EQ(transport.queued, 0U);
}

TEST_F(ShardOutboxTest, IsBlockedWhileTheKernelAcceptsNothing) {
    transport.accepts = 0;
    for (std::uint32_t i = 0; i < most_packets; ++i) ASSERT_TRUE(borrow());
    EXPECT_FALSE(outbox.blocked()) << "not flushed yet";
    EXPECT_FALSE(borrow());
    EXPECT_TRUE(outbox.blocked());
    EXPECT_TRUE(outbox.reserve(8).empty());
    transport.accepts = 1000;
    outbox.flush();
    EXPECT_FALSE(outbox.blocked());
    EXPECT_TRUE(borrow());
}

}  // namespace
}  // namespace atp::switchd
