// SPDX-License-Identifier: Apache-2.0
// Strangers on the same network (H35, docs/spec/hazards.md#h35) send arbitrary packets to every port. Sums stay right,
// no operation fails, and the switch counts these packets.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "client/switch_client.h"
#include "fabric.h"
#include "net/clock.h"
#include "support/fails.h"
#include "values.h"
#include "wire/control.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

using std::chrono::milliseconds;

// A socket outside every job, and the packets that an attacker without the token could send.
class Stranger {
  public:
    explicit Stranger(std::uint32_t seed) : chance_(seed) {
        auto socket = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
        if (socket) socket_ = *std::move(socket);
        EXPECT_NE(socket_, nullptr);
    }

    void send(std::span<const std::byte> bytes, const wire::Address& to) {
        const std::span<std::byte> room = socket_->reserve(bytes.size());
        if (room.empty()) return;
        std::ranges::copy(bytes, room.begin());
        socket_->commit(bytes.size(), to);
        static_cast<void>(socket_->flush());
    }
    // Waits for one datagram. Empty: none arrived.
    Bytes answer() {
        std::array<wire::Datagram, 1> datagrams;
        for (int i = 0; i < 2000; ++i) {
            const auto count = socket_->receive(datagrams);
            if (count && *count == 1) return {datagrams[0].bytes.begin(), datagrams[0].bytes.end()};
            std::this_thread::sleep_for(milliseconds(1));
        }
        return {};
    }

    void send_noise(const wire::Address& to) {
        Bytes bytes(below(400));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(below(256));
        if (bytes.size() > 1 && below(2) == 0) {
            bytes[0] = std::byte{below(2) == 0 ? std::uint8_t{ATP_VERSION} : wire::control_version};
            bytes[1] = static_cast<std::byte>(below(26));
        }
        send(bytes, to);
    }
    // A valid packet of a real job with a random other token; sometimes truncated.
    void send_forgery(std::uint32_t job, const wire::Address& to) {
        const bool up = below(2) == 0;
        Bytes bytes(ATP_HEADER_BYTES + std::size_t{small_lanes} * ATP_LANE_BYTES, std::byte{0x77});
        const atp_header header{.version = ATP_VERSION,
                                .type = static_cast<std::uint8_t>(up ? ATP_TYPE_GRADIENT : ATP_TYPE_ACK),
                                .flags = static_cast<std::uint16_t>(below(ATP_FLAG_ALL + 1)),
                                .hop = static_cast<std::uint8_t>(below(3)),
                                .lanes = static_cast<std::uint8_t>(up ? ATP_INT32_LANES : ATP_FLOAT32_LANES),
                                .window_log2 = 4,
                                .scale = 0,
                                .job = job,
                                .channel = 0,
                                .worker = static_cast<std::uint16_t>(below(3)),
                                .token = std::uint64_t{below(~0U)} + 1,
                                .seq = below(200),
                                .index = below(3000),
                                .argument = below(1000),
                                .peer = ATP_WORKER_ALL,
                                .sending = 0,
                                .part = 0,
                                .bitmap0 = 1U << below(2),
                                .mask0 = 3,
                                .bitmap1 = 1,
                                .mask1 = 1};
        wire::encode_header(header, bytes);
        if (below(4) == 0) bytes.resize(below(static_cast<std::uint32_t>(bytes.size())));
        send(bytes, to);
    }
    void send_control(std::uint32_t job, const wire::Address& to) {
        if (below(5) != 0) return send_answer(job, to);
        learn_cookies();
        std::array<std::byte, 1024> bytes{};
        wire::Join join;
        join.cookie = cookies_[to];
        join.epoch = ++epoch_;
        join.terms = {.job = job,
                      .token = below(~0U),
                      .lanes = small_lanes,
                      .window_log2 = 4,
                      .mask1 = 1,
                      .scale = 1,
                      .server = {}};
        join.units = {{.unit = 0, .members = 1, .mask0 = 3, .ranks = {0}}};
        send({bytes.data(), wire::encode(join, bytes, wire::least_question_bytes)}, to);
    }
    // An answer as if from a switch, or a LEAVE as if from a member.
    void send_answer(std::uint32_t job, const wire::Address& to) {
        std::array<std::byte, 1024> bytes{};
        std::size_t size = 0;
        const std::uint32_t token = below(~0U);
        switch (below(4)) {
            case 0: size = wire::encode(wire::Leave{.job = job, .token = token}, bytes); break;
            case 1: size = wire::encode(wire::Joined{.job = job, .token = token, .missing_units = 1}, bytes); break;
            case 2:
                size = wire::encode(
                    wire::Refused{.job = job, .token = token, .reason = wire::Refusal::restarted, .text = {}}, bytes);
                break;
            default:
                size = wire::encode(wire::Refused{.job = job, .reason = wire::Refusal::version, .text = {}}, bytes);
        }
        send({bytes.data(), size}, to);
    }

  private:
    // This sender receives at its address, so a switch gives it cookies.
    void learn_cookies() {
        std::array<wire::Datagram, 16> datagrams;
        const auto count = socket_->receive(datagrams);
        for (std::size_t i = 0; count && i < *count; ++i) {
            if (const auto retry = wire::decode<wire::Retry>(datagrams[i].bytes))
                cookies_[*datagrams[i].from] = retry->cookie;
        }
    }
    std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(chance_() % end); }

    std::unique_ptr<net::UdpSocket> socket_;
    std::mt19937 chance_;
    std::map<wire::Address, std::uint64_t> cookies_;
    std::uint32_t epoch_ = 0;
};

// Two ranks sum while two strangers send to every open port.
void sum_among_strangers(const std::vector<std::string>& switches, const comm::Options& options = small_options()) {
    Job job(2, switches, options);
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    const std::uint32_t number = *ranks[0]->formation().job;
    const std::vector<wire::Address> ports = open_ports();
    ASSERT_GE(ports.size(), 3U);
    std::atomic<bool> over{false};
    std::atomic<std::uint32_t> sent{0};
    {
        std::vector<std::jthread> strangers;
        for (std::uint32_t seed = 0; seed < 2; ++seed) {
            strangers.emplace_back([&, seed] {
                for (Stranger stranger(seed); !over;) {
                    for (const wire::Address& port : ports) {
                        stranger.send_noise(port);
                        stranger.send_forgery(number, port);
                        stranger.send_control(number, port);
                    }
                    ++sent;
                }
            });
        }
        // One control message in five is a JOIN of another job: in all more jobs than the table holds.
        EXPECT_TRUE(eventually([&] { return sent > 400; }));
        each(2, [&](std::uint32_t rank) {
            for (std::uint32_t round = 0; round < 15; ++round) expect_sum(*ranks[rank], several_windows, round);
        });
        over = true;
    }
    // A rank takes packets from its switch only.
    EXPECT_EQ(counters_of(*ranks[0]).forged, 0U);
    EXPECT_TRUE(eventually([&] { return ranks[0]->counters()[0].strays != 0; }));
}

TEST(ForeignPackets, ChangeNoSumOfOneSwitch) {
    const auto node = start(small_switch());
    sum_among_strangers({address_of(*node)});
    EXPECT_TRUE(eventually([&] {
        const client::ShardReport shard = node->snapshot().shards[0];
        return shard.packets.forged != 0 && shard.tree.forged != 0 && shard.tree.refused + shard.tree.deferred != 0 &&
               shard.shard.control_refused != 0 && shard.shard.control_retries != 0;
    })) << to_json(node->snapshot());
}

TEST(ForeignPackets, ChangeNoSumOfTwoLevels) {
    TwoLevels fabric;
    sum_among_strangers({address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])});
}

TEST(ForeignPackets, ChangeNoSumOfServersBesideWorkers) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.server = comm::ServerPlace::colocated;
    sum_among_strangers({address_of(*node)}, options);
}

// The newest job that the switch knows.
std::uint32_t job_at(const switchd::SwitchNode& node) {
    const auto jobs = node.snapshot().shards[0].jobs;
    return jobs.empty() ? 0 : jobs.back().job;
}

TEST(ForeignPackets, PreventNoJobFromForming) {
    const auto node = start(small_switch());
    std::atomic<bool> over{false};
    std::vector<std::jthread> strangers;
    for (std::uint32_t seed = 0; seed < 2; ++seed) {
        strangers.emplace_back([&, seed] {
            for (Stranger stranger(seed); !over;) {
                const std::uint32_t job = job_at(*node);
                for (const wire::Address& port : open_ports()) {
                    stranger.send_noise(port);
                    stranger.send_forgery(job, port);
                    // A JOIN for an unknown job would create it, because a switch does not authenticate members.
                    if (job != 0) stranger.send_answer(job, port);
                }
            }
        });
    }
    for (std::uint32_t round = 0; round < 10; ++round) {
        Job(3, {address_of(*node)}).run([round](comm::Communicator& communicator) {
            expect_sum(communicator, several_windows, round);
        });
    }
    over = true;
}

// ------------------------------------------------------------------------------------------------------ Other versions

const std::string next_version = "version " + std::to_string((wire::control_version + 1U) & 0xFU);

TEST(OtherVersion, OfAMessageIsRefusedWithThatVersion) {
    const auto node = start(small_switch());
    for (const bool joins : {false, true}) {
        std::array<std::byte, 512> bytes{};
        wire::Join join;
        join.nonce = 7;
        join.terms = {.job = 1, .token = 2, .lanes = 8, .mask1 = 1, .scale = 1, .server = {}};
        join.units = {{.unit = 0, .members = 1, .mask0 = 1, .ranks = {0}}};
        const std::size_t size = joins ? wire::encode(join, bytes, wire::least_question_bytes)
                                       : wire::encode(wire::Hello{.nonce = 7}, bytes, wire::least_question_bytes);
        ASSERT_GT(size, 0U);
        bytes[0] = std::byte{wire::control_version + 1};
        Stranger stranger(1);
        stranger.send({bytes.data(), size}, node->address());
        const Bytes answer = stranger.answer();
        EXPECT_EQ(wire::refusal_version(answer), wire::control_version);
        const auto refused = wire::decode<wire::Refused>(answer);
        ASSERT_TRUE(refused);
        EXPECT_EQ(refused->reason, wire::Refusal::version);
        EXPECT_EQ(refused->nonce, 7U);
        EXPECT_NE(refused->text.find(next_version), std::string::npos) << refused->text;
    }
}

// If a switch of another version answers, the ranks report that at once.
TEST(OtherVersion, OfASwitchIsReportedByTheRanks) {
    auto opened = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(opened);
    net::UdpSocket& foreign = **opened;
    std::jthread answering([&](const std::stop_token& stop) {
        std::array<wire::Datagram, 4> datagrams;
        while (!stop.stop_requested()) {
            const auto count = foreign.receive(datagrams);
            for (std::size_t i = 0; count && i < *count; ++i) {
                const std::span<std::byte> room = foreign.reserve(1024);
                const std::size_t size =
                    wire::encode(wire::Refused{.nonce = wire::nonce_of(datagrams[i].bytes).value_or(0),
                                               .reason = wire::Refusal::version,
                                               .text = "this switch speaks " + next_version},
                                 room);
                room[0] = std::byte{wire::control_version + 1};
                foreign.commit(size, *datagrams[i].from);
            }
            static_cast<void>(foreign.flush());
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    const auto formed = Job(1, {to_string(foreign.local())}).form(0);
    EXPECT_TRUE(fails(formed, {.reason = Reason::version_mismatch, .printed = ::testing::HasSubstr(next_version)}));
}

}  // namespace
}  // namespace atp::test
