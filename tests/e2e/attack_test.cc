// SPDX-License-Identifier: Apache-2.0
// What a host outside a job can do with ordinary sockets, from an address of its own: listen to the group and forge
// results, use a switch as an amplifier, and guess tokens.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "control/branch.h"
#include "fabric.h"
#include "outsider.h"
#include "values.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

// Reads the results of a job, and forges those of the next fragments.
class Listener {
  public:
    Listener(const wire::Address& group, std::vector<wire::Address> ports)
        : group_(group),
          ports_(std::move(ports)),
          socket_(Outsider::listener(group)),
          thread_([this](const auto& stop) {
              while (!stop.stop_requested()) {
                  hear(Outsider::receive(socket_, 1));
                  forge();
              }
          }) {}

    std::atomic<std::uint64_t> results{0};
    std::atomic<std::uint64_t> forged{0};
    std::atomic<std::uint64_t> token{0};

  private:
    void hear(Bytes result) {
        wire::Packet packet;
        if (wire::decode(result, packet) != wire::DecodeError::none || packet.header.type != ATP_TYPE_ACK) return;
        ++results;
        token = packet.header.token;
        next_ = packet.header.seq;
        if (result.size() == ATP_HEADER_BYTES + small_lanes * ATP_LANE_BYTES) template_ = std::move(result);
    }
    // Results of the fragments that follow the last one heard, again and again, as one of them may be in flight.
    void forge() {
        wire::Packet packet;
        if (wire::decode(template_, packet) != wire::DecodeError::none) return;
        for (std::uint32_t ahead = 1; ahead <= 16; ++ahead) {
            atp_header header = packet.header;
            header.seq = next_ + ahead;
            Bytes bytes = template_;
            wire::encode_header(header, bytes);
            std::fill(bytes.begin() + ATP_HEADER_BYTES, bytes.end(), std::byte{0x55});
            outsider_.send(bytes, group_);
            for (const wire::Address& port : ports_) outsider_.send(bytes, port);
            ++forged;
        }
    }

    wire::Address group_;
    std::vector<wire::Address> ports_;
    Outsider outsider_;
    net::Descriptor socket_;
    Bytes template_;
    std::uint32_t next_ = 0;
    std::jthread thread_;  // last: it ends before what it uses
};

TEST(Attack, H70_ListenerOfTheGroupWhoForgesResultsFromHisOwnAddressChangesNoSum) {
    const auto node = start(small_switch());
    comm::Options options = small_options();  // without an audit lane, which would detect a wrong sum
    options.multicast = control::parse_multicast("239.192.7.9").value();
    Job job(2, {address_of(*node)}, options);
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    const auto sum = [&](std::uint32_t rounds) {
        each(2, [&](std::uint32_t rank) {
            for (std::uint32_t round = 0; round < rounds; ++round) {
                // The first window of rank 0 is in flight meanwhile.
                if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
                expect_sum(*ranks[rank], several_windows, round);
            }
        });
    };
    ASSERT_TRUE(eventually([&] {
        sum(2);
        const auto channels = node->snapshot().shards[0].channels;
        return ranks[0]->results_by_group() && !channels.empty() && channels[0].by_group;
    }));
    const auto group = wire::Address::parse("239.192.7.9:4792");  // which hosts see in reports of IGMP
    const std::uint64_t strays = ranks[0]->counters()[0].strays;
    Listener listener(*group, open_ports());
    sum(60);
    EXPECT_TRUE(eventually([&] {
        sum(2);
        return listener.forged > 100 && ranks[0]->counters()[0].strays > strays;
    })) << listener.results
        << " results heard";

    // What he read is no token: the switch takes no gradient with it.
    EXPECT_NE(listener.token, 0U);
    const std::uint64_t forged = node->snapshot().shards[0].packets.forged;
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 4;
    header.job = *ranks[0]->formation().job;
    header.token = listener.token;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = header.bitmap1 = header.mask1 = 1;
    header.mask0 = 3;
    Bytes gradient(ATP_HEADER_BYTES + small_lanes * ATP_LANE_BYTES);
    wire::encode_header(header, gradient);
    Outsider().send(gradient, node->address());
    EXPECT_TRUE(eventually([&] { return node->snapshot().shards[0].packets.forged > forged; }));
    sum(2);
}

wire::Join join_of(std::uint32_t job, std::uint64_t token, unsigned members) {
    wire::Join join;
    join.nonce = 0x1111;
    join.terms.job = job, join.terms.token = token;
    join.terms.lanes = small_lanes, join.terms.window_log2 = 4, join.terms.aggregators = 16;
    join.terms.mask1 = 1, join.terms.scale = 1e8;
    join.units = {
        {.unit = 0, .members = 1, .mask0 = members == 32 ? ~0U : (1U << members) - 1, .direct = false, .ranks = {0}}};
    return join;
}

// Each control message, short and padded, from a sender that never reads an answer.
TEST(Attack, NoMessageGetsMoreBytesThanItHas) {
    const auto node = start(small_switch());
    const auto expect_less = [&](const std::string& name, auto&& ask) {
        Outsider outsider;
        for (int i = 0; i < 20; ++i) ask(outsider);
        std::uint64_t received = 0;
        for (Bytes answer = outsider.receive(500); !answer.empty(); answer = outsider.receive(100)) {
            received += answer.size();
        }
        EXPECT_LE(received, outsider.sent_bytes) << name;
    };
    wire::Join many = join_of(7, 9, 32);
    expect_less("a JOIN of 32 members", [&](Outsider& outsider) {
        for (unsigned member = 0; member < 32; ++member) {
            many.units[0].members = 1U << member;
            many.units[0].ranks = {static_cast<std::uint16_t>(member)};
            ++many.epoch;
            outsider.say(wire::JoiningMessage(many), node->address());
        }
    });
    expect_less("a JOIN without padding", [&](Outsider& outsider) {
        Bytes bytes(2048);
        bytes.resize(wire::encode(many, bytes));
        outsider.send(bytes, node->address());
    });
    expect_less("a JOIN of another version", [&](Outsider& outsider) {
        Bytes bytes(2048);
        bytes.resize(wire::encode(many, bytes));
        bytes[0] = std::byte{wire::control_version + 1};
        outsider.send(bytes, node->address());
    });
    expect_less("HELLO", [&](Outsider& outsider) {
        for (const std::size_t length : {std::size_t{0}, std::size_t{64}, wire::least_question_bytes}) {
            Bytes bytes(2048);
            bytes.resize(wire::encode(wire::Hello{.nonce = 5}, bytes, length));
            outsider.send(bytes, node->address());
        }
    });
    expect_less("STATS", [&](Outsider& outsider) { outsider.say(wire::Stats{.nonce = 5}, node->address()); });
    expect_less("LEAVE", [&](Outsider& outsider) {
        outsider.say(wire::Leave{.job = 7, .token = 9, .epoch = 99}, node->address());
    });
    expect_less("JOINED", [&](Outsider& outsider) {
        outsider.say(wire::Joined{.job = 7, .token = 9, .ready = true}, node->address());
    });
    expect_less("REFUSED", [&](Outsider& outsider) {
        outsider.say(wire::Refused{.job = 7, .token = 9, .reason = wire::Refusal::full, .text = {}}, node->address());
    });
    EXPECT_TRUE(eventually([&] { return node->snapshot().shards[0].shard.control_retries >= 640; }));
    EXPECT_EQ(node->snapshot().shards[0].tree.joins, 0U) << "no JOIN without a cookie reached the tree";
}

// It receives JOINs, and answers none: what a JOIN of the outsider makes a switch send to a host that never asked.
struct Sink {
    net::Descriptor socket = Outsider::bound(ipv4("127.0.0.3", 0));
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    wire::Join last{};

    [[nodiscard]] wire::Endpoint endpoint() const {
        sockaddr_in at{};
        socklen_t size = sizeof at;
        EXPECT_EQ(getsockname(socket.number(), reinterpret_cast<sockaddr*>(&at), &size), 0);
        return control::endpoint_of(wire::Address::from(reinterpret_cast<const sockaddr*>(&at), size));
    }
    // Until nothing came for so long.
    void drain(int quiet_ms) {
        for (Bytes each = Outsider::receive(socket, quiet_ms); !each.empty() && messages < 1000;
             each = Outsider::receive(socket, quiet_ms)) {
            bytes += each.size();
            ++messages;
            last = wire::decode<wire::Join>(each).value_or(last);
        }
    }
};

TEST(Attack, H97_HostThatNeverAskedGetsNoMoreThanTheJoinsThatNameIt) {
    const auto node = start(small_switch());
    Sink sink;
    Outsider outsider;
    wire::Join join = join_of(7, 9, 1);
    join.terms.server = sink.endpoint();
    ASSERT_FALSE(outsider.join(join, node->address()).empty());
    sink.drain(250);
    EXPECT_EQ(sink.messages, 1U) << "a timer of the switch sends nothing more";
    EXPECT_LE(sink.bytes, wire::least_question_bytes);

    // As if it had read what the switch sent: only the host that was asked can answer.
    for (std::uint64_t cookie = 1; cookie <= 100; ++cookie) {
        outsider.say(wire::JoiningMessage(
                         wire::Retry{.nonce = sink.last.nonce, .job = 7, .token = 9, .channel = 0, .cookie = cookie}),
                     node->address());
    }
    EXPECT_TRUE(eventually([&] { return node->snapshot().shards[0].tree.forged >= 100; }));
    sink.drain(100);
    EXPECT_EQ(sink.messages, 1U);

    const std::uint64_t before = outsider.sent_bytes;
    for (std::uint32_t number = 0; number < 200; ++number) {
        join.terms.job = 7 + number % 8;
        ASSERT_FALSE(outsider.join(join, node->address()).empty());
    }
    sink.drain(100);
    EXPECT_LE(sink.messages, 9U) << "of all jobs together";
    EXPECT_LE(sink.bytes, before + outsider.sent_bytes);
}

// A report costs a thread milliseconds, so those who ask share it.
TEST(Attack, QuestionsForReportsMakeAtMostOneIn100Ms) {
    const auto node = start(small_switch());
    Outsider outsider;
    wire::Stats stats{.nonce = 1};
    outsider.say(stats, node->address());
    const auto retry = wire::decode<wire::Retry>(outsider.receive(2000));
    ASSERT_TRUE(retry);
    stats.cookie = retry->cookie;
    std::set<std::uint32_t> numbers;
    const auto begin = std::chrono::steady_clock::now();
    while (numbers.size() < 4) {
        for (int i = 0; i < 20; ++i, ++stats.nonce) outsider.say(stats, node->address());
        for (Bytes answer = outsider.receive(200); !answer.empty(); answer = outsider.receive(1)) {
            if (const auto report = wire::decode<wire::Report>(answer)) numbers.insert(report->snapshot);
        }
        ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

// The answers for a running job and for one that does not exist are equal, whatever token is guessed.
TEST(Attack, H70_AnswersToGuessedTokensRevealNothing) {
    auto config = small_switch();
    config.jobs = config.channels = 1000;
    const auto node = start(config);
    Job running(2, {address_of(*node)});
    const auto ranks = running.formed();
    ASSERT_EQ(ranks.size(), 2U);
    const std::uint32_t job = *ranks[0]->formation().job;
    Outsider outsider;
    std::set<Bytes> answers;
    for (std::uint64_t guess = 1; guess <= 100; ++guess) {
        for (const std::uint32_t of_job : {job, job + 1}) {
            auto joined = wire::decode<wire::Joined>(outsider.join(join_of(of_job, guess, 2), node->address()));
            ASSERT_TRUE(joined) << "guess " << guess;
            EXPECT_FALSE(joined->ready);
            joined->job = joined->epoch = joined->number = 0;
            joined->group_number = 0;  // a random one for each token, right or wrong
            joined->token = 0;
            Bytes bytes(2048);
            bytes.resize(wire::encode(*joined, bytes));
            answers.insert(bytes);
        }
    }
    EXPECT_EQ(answers.size(), 1U);
    each(2, [&](std::uint32_t rank) { expect_sum(*ranks[rank], several_windows, 1); });
    EXPECT_TRUE(eventually([&] { return node->snapshot().shards[0].tree.joins >= 200; })) << "all are counted";
}

}  // namespace
}  // namespace atp::test
