// SPDX-License-Identifier: Apache-2.0
// A switch as its members see it: over sockets of the loopback.
#include "switchd/node.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "client/switch_client.h"
#include "net/clock.h"
#include "support/control_messages.h"
#include "support/fails.h"
#include "support/packets.h"
#include "udp_fixture.h"

namespace atp::switchd {
namespace {

using client::SwitchClient;

constexpr std::uint32_t job = 7;
constexpr std::uint64_t token = 0x5eed;
constexpr std::uint16_t first_channel = 3;

Time soon() { return net::now() + std::chrono::seconds(20); }

SwitchNodeConfig small(std::uint32_t shards = 1) {
    SwitchNodeConfig config;
    config.udp = test::on_loopback(wire::Family::ipv4);
    config.memory_bytes = 1'000'000;
    config.lanes = 62;
    config.shards = shards;
    config.server_bytes = 64'000'000;
    config.hold = std::chrono::minutes(1);  // members send no second JOIN, and this machine may be busy
    return config;
}

std::unique_ptr<SwitchNode> start(const SwitchNodeConfig& config) {
    auto node = SwitchNode::start(config);
    if (!node) ADD_FAILURE() << to_string(node.error());
    return node ? *std::move(node) : nullptr;
}

// Bytes that arrived, as a decoder reads them.
std::span<const std::byte> bytes_in(const test::Arrival& arrival) { return std::as_bytes(std::span(arrival.bytes)); }

// One of `count` members of the only unit of a channel.
class Member {
  public:
    Member(std::uint16_t rank, std::uint16_t count, std::uint16_t channel = first_channel)
        : rank_(rank), mask_((1U << count) - 1), socket_(test::open_or_fail(test::on_loopback(wire::Family::ipv4))) {
        join_.nonce = 100U + rank;
        join_.terms.job = job, join_.terms.token = token, join_.terms.channel = channel;
        join_.terms.lanes = 4, join_.terms.window_log2 = 3, join_.terms.aggregators = 64;
        join_.terms.mask1 = 1, join_.terms.scale = 1e6;
        join_.units = {{.unit = 0, .members = 1U << rank, .mask0 = mask_, .direct = false, .ranks = {rank}}};
    }
    // The answer to a JOIN that has the cookie. Its sender takes the packets of the channel.
    wire::Joined join(const wire::Address& address) {
        for (int attempt = 0; attempt < 3; ++attempt) {
            ++join_.epoch;
            send(testing::encoded(join_, wire::least_question_bytes), address);
            const test::Arrival answer = next();
            if (const auto retry = wire::decode<wire::Retry>(bytes_in(answer))) join_.cookie = retry->cookie;
            if (auto joined = wire::decode<wire::Joined>(bytes_in(answer))) {
                shard_ = answer.from;
                return *std::move(joined);
            }
        }
        ADD_FAILURE() << "no JOINED";
        return {};
    }
    // The server of a channel begins after the first JOINED.
    void join_until_ready(const wire::Address& address) {
        while (!::testing::Test::HasFailure() && !join(address).ready) {
        }
    }
    void leave(const wire::Address& address) {
        const wire::Leave leave{.nonce = join_.nonce,
                                .job = job,
                                .token = token,
                                .channel = join_.terms.channel,
                                .epoch = ++join_.epoch,
                                .unit = 0,
                                .member = static_cast<std::uint8_t>(rank_)};
        send(testing::encoded(leave), address);
    }
    void send_gradient(const testing::Lanes& lanes) {
        atp_header header{};
        header.type = ATP_TYPE_GRADIENT;
        header.lanes = ATP_INT32_LANES;
        header.window_log2 = 3;
        header.flags = ATP_FLAG_PLAIN;
        header.job = job, header.token = token, header.channel = join_.terms.channel;
        header.worker = rank_;
        header.index = 5;
        header.peer = ATP_WORKER_ALL;
        header.bitmap0 = 1U << rank_, header.mask0 = mask_;
        header.bitmap1 = header.mask1 = 1;
        send(testing::make_packet(header, lanes), shard_);
    }
    // Lanes of the next ACK.
    testing::Lanes result() {
        for (;;) {
            const test::Arrival arrival = next();
            if (arrival.bytes.empty()) return {};
            const auto bytes = bytes_in(arrival);
            if (bytes.size() >= ATP_HEADER_BYTES && testing::header_in(bytes).type == ATP_TYPE_ACK) {
                return testing::lanes_in(bytes);
            }
        }
    }
    [[nodiscard]] const wire::Address& shard() const { return shard_; }

  private:
    void send(const std::vector<std::byte>& bytes, const wire::Address& to) {
        const auto* const text = reinterpret_cast<const char*>(bytes.data());
        ASSERT_TRUE(test::put(*socket_, std::string_view(text, bytes.size()), to));
        static_cast<void>(socket_->flush());
    }
    test::Arrival next() {
        if (arrivals_.empty()) arrivals_ = test::receive(*socket_, 1);
        if (arrivals_.empty()) return {};
        test::Arrival first = arrivals_.front();
        arrivals_.erase(arrivals_.begin());
        return first;
    }

    std::uint16_t rank_;
    std::uint32_t mask_;
    std::unique_ptr<net::UdpSocket> socket_;
    wire::Join join_;
    wire::Address shard_;
    std::vector<test::Arrival> arrivals_;
};

client::SwitchReport report_of(const SwitchNode& node) {
    auto client = SwitchClient::open(node.address());
    const auto text = (*client)->report(soon());
    EXPECT_TRUE(text) << to_string(text.error());
    return text ? client::read_switch_report(*text).value_or(client::SwitchReport{}) : client::SwitchReport{};
}

TEST(SwitchNode, MembersJoinAndEachReceivesTheSum) {
    const auto node = start(small());
    ASSERT_NE(node, nullptr);
    Member one(0, 2);
    Member other(1, 2);
    EXPECT_FALSE(one.join(node->address()).ready);
    other.join_until_ready(node->address());
    one.send_gradient({1, 2, 3, 4});
    other.send_gradient({10, 20, 30, 40});
    const testing::Lanes sum{11, 22, 33, 44};
    EXPECT_EQ(one.result(), sum);
    EXPECT_EQ(other.result(), sum);

    const client::SwitchReport report = report_of(*node);
    ASSERT_EQ(report.shards.size(), 1U);
    const client::ShardReport& shard = report.shards[0];
    ASSERT_EQ(shard.channels.size(), 1U);
    EXPECT_TRUE(shard.channels[0].ready && shard.channels[0].hosts);
    EXPECT_EQ(shard.channels[0].present, 2U);
    ASSERT_EQ(shard.jobs.size(), 1U);
    EXPECT_EQ(shard.jobs[0].job, job);
    EXPECT_EQ(shard.packets.events[ATP_EVENT_COMPLETED], 1U);
    EXPECT_GE(shard.shard.control_retries, 2U) << "each member had to prove its address";

    one.leave(node->address());
    other.leave(node->address());
    while (!HasFailure() && !report_of(*node).shards.at(0).channels.empty()) {
    }
}

TEST(SwitchNode, ChannelsAreOnSeveralShardsBehindOneAddress) {
    const auto node = start(small(2));
    ASSERT_NE(node, nullptr);
    std::vector<wire::Address> shards;
    for (std::uint16_t channel = 0; channel < 8; ++channel) {
        Member member(0, 1, channel);
        member.join_until_ready(node->address());
        member.send_gradient({5, 6, 7, 8});
        EXPECT_EQ(member.result(), (testing::Lanes{5, 6, 7, 8}));
        if (std::ranges::find(shards, member.shard()) == shards.end()) shards.push_back(member.shard());
    }
    EXPECT_EQ(shards.size(), 2U);
    node->stop();
    const client::SwitchReport totals = node->snapshot();
    ASSERT_EQ(totals.shards.size(), 2U);
    EXPECT_EQ(totals.shards[0].channels.size() + totals.shards[1].channels.size(), 8U);
}

TEST(SwitchNode, PathOfALeafEndsAtItsRoot) {
    const auto root = start(small());
    ASSERT_NE(root, nullptr);
    SwitchNodeConfig config = small();
    config.parent = root->address();
    config.report_parts = R"({"rack": 4})";
    const auto leaf = SwitchNode::start(config, {}, [] { return client::ShardReport{.address = "the kernel"}; });
    ASSERT_TRUE(leaf) << to_string(leaf.error());
    auto client = SwitchClient::open((*leaf)->address());
    ASSERT_TRUE(client);
    auto greeting = (*client)->hello(soon());
    while (!greeting) {  // until the root has answered the leaf
        ASSERT_EQ(greeting.error().reason, Reason::rejected) << to_string(greeting.error());
        greeting = (*client)->hello(soon());
    }
    EXPECT_EQ(greeting->welcome.path.size(), 2U);
    while (!HasFailure() && !report_of(**leaf).parent_answers) {
    }
    const client::SwitchReport report = report_of(**leaf);
    EXPECT_TRUE(report.parent_answers);
    EXPECT_EQ(report.parent, to_string(root->address()));
    EXPECT_EQ(report.shards.back().address, "the kernel");
    ASSERT_EQ(report.parts.size(), 1U);
    EXPECT_EQ(report.parts[0].json, "4");
    EXPECT_GE(report.hellos, 1U);
}

TEST(SwitchNode, ServersGetAtMostAQuarterOfTheHostUnlessAsked) {
    EXPECT_EQ(MemoryOfHost({.ram = 8'000'000'000}).usual_server_bytes(), 2'000'000'000U);
    EXPECT_EQ(MemoryOfHost({.ram = 400'000'000'000}).usual_server_bytes(), std::uint64_t{4} << 30U);
    EXPECT_LE(SwitchNodeConfig().server_bytes, std::max(MemoryOfHost::of_this_host().ram / 4, std::uint64_t{1}));
}

TEST(SwitchNode, MemoryOfAContainerIsItsLowestLimit) {
    std::string folder = (std::filesystem::temp_directory_path() / "atp-limits-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string root = folder + "/root";
    const auto put = [](const std::string& path, std::string_view text) {
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        std::ofstream(path) << text << '\n';
    };
    const std::string groups = folder + "/groups";
    put(groups, "9:name=systemd:/\n4:memory:/old\n0::/slice/unit");
    constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(memory_limit(groups, root), none);
    put(root + "/slice/unit/memory.max", "max");
    EXPECT_EQ(memory_limit(groups, root), none);
    put(root + "/memory/memory.limit_in_bytes", "9000");
    EXPECT_EQ(memory_limit(groups, root), 9000U);
    put(root + "/slice/memory.max", "8000");
    EXPECT_EQ(memory_limit(groups, root), 8000U) << "of the group around it";
    put(root + "/memory/old/memory.limit_in_bytes", "7000");
    EXPECT_EQ(memory_limit(groups, root), 7000U);
    put(root + "/memory.max", "6000");
    EXPECT_EQ(memory_limit(groups, root), 6000U) << "in a container, of the root that it sees";
    EXPECT_EQ(memory_limit(folder + "/nothing", root), none);
    std::filesystem::remove_all(folder);
}

TEST(SwitchNode, StartFailsWithTheReason) {
    SwitchNodeConfig huge = small();
    huge.memory_bytes = std::uint64_t{1} << 60U;
    const auto no_memory = SwitchNode::start(huge);
    EXPECT_TRUE(
        fails(no_memory, {.reason = Reason::exhausted, .text = ::testing::HasSubstr("this host or container has")}));
    SwitchNodeConfig servers = small();
    servers.server_bytes = std::uint64_t{1} << 60U;
    EXPECT_TRUE(fails(SwitchNode::start(servers),
                      {.reason = Reason::exhausted, .text = ::testing::HasSubstr("parameter servers beside")}));

    const auto node = start(small());
    ASSERT_NE(node, nullptr);
    SwitchNodeConfig taken = small();
    taken.udp.local = node->address();
    EXPECT_TRUE(fails(SwitchNode::start(taken), {.reason = Reason::in_use}));
}

TEST(SwitchNode, ShardThatCannotRunIsReported) {
    SwitchNodeConfig config = small();
    config.cores = {4095};  // no host has it
    std::atomic<bool> failed = false;
    const auto node = SwitchNode::start(config, [&failed] {
        failed = true;
        failed.notify_all();
    });
    ASSERT_TRUE(node) << to_string(node.error());
    failed.wait(false);
    ASSERT_TRUE((*node)->failure());
}

}  // namespace
}  // namespace atp::switchd
