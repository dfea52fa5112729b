// SPDX-License-Identifier: Apache-2.0
// Ranks with a key, and switches with tenants, over a network on which somebody records, repeats and forges messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/in_path_agent.h"
#include "endpoint/channel_fixture.h"
#include "endpoint/shard_machine.h"
#include "support/recording_outbox.h"

namespace atp::endpoint {
namespace {

using control::Tenant;
using control::Tenants;
using ::testing::ElementsAre;
using testing::encoded;
using Bytes = std::vector<std::byte>;

crypto::TenantKey tenant_key(std::uint32_t id, std::string tenant) {
    crypto::TenantKey key{.id = id, .tenant = std::move(tenant)};
    key.key.bytes().front() = static_cast<std::byte>(id);
    return key;
}
const crypto::TenantKey vision = tenant_key(7, "vision");
const crypto::TenantKey fabric = tenant_key(9, "fabric");

std::shared_ptr<const crypto::TenantKey> shared(const crypto::TenantKey& key) {
    return std::make_shared<const crypto::TenantKey>(key);
}

std::shared_ptr<const Tenants> tenants_at(const std::string& name) {
    return std::make_shared<const Tenants>(
        std::vector{Tenant{.name = "vision", .keys = {key_for_switch(vision, name)}},
                    Tenant{.name = "fabric", .keys = {key_for_switch(fabric, name)}, .fabric = true}});
}

const wire::Address leaf_address = address("10.0.0.1:4790");
const wire::Address spine_address = address("10.0.0.2:4790");
wire::Address rank_address(std::uint16_t rank) { return address(("10.0.1.1:" + std::to_string(5000 + rank)).c_str()); }

ShardMachineConfig switch_config(const std::string& name, std::uint64_t boot, const wire::Address& parent = {}) {
    ShardMachineConfig config{.table = {.aggregators = 64, .lanes = 16, .jobs = 4}};
    config.tree = {.parent = parent, .jobs = 4, .channels = 8, .secret = {boot, 1}, .ticket_key = {9, 9}};
    config.tree.tenants = tenants_at(name);
    return config;
}

bool is_gradient(const Bytes& bytes) {
    return !wire::control_type(bytes) && testing::header_in(bytes).type == ATP_TYPE_GRADIENT;
}

// Machines at addresses, a clock, and all datagrams that were sent.
class Net {
  public:
    struct Flight {
        Bytes bytes;
        wire::Address from;
        wire::Address to;
    };

    void set_switch(const wire::Address& at, const ShardMachineConfig& config) {
        switches_[at] = std::make_unique<ShardMachine>(config);
    }
    void add_rank(const std::shared_ptr<const protocol::Membership>& membership, std::uint16_t rank,
                  std::shared_ptr<const crypto::TenantKey> key) {
        ChannelMachineConfig config = config_of(membership, rank);
        config.switch_address = leaf_address;
        config.nonce = 1000 + rank;
        config.key = std::move(key);
        add(rank, config);
    }
    void add(std::uint16_t rank, const ChannelMachineConfig& config) {
        ranks_[rank_address(rank)] = std::make_unique<ChannelMachine>(config);
    }
    // Until then, timers expire in their order.
    void pass(Duration duration) {
        const Time end = now + duration;
        for (int step = 0; step < 100'000; ++step) {
            carry();
            Time next = never;
            for (const auto& [at, rank] : ranks_) next = std::min(next, rank->poll_timeout());
            for (const auto& [at, node] : switches_) next = std::min(next, node->poll_timeout());
            if (next > end) break;
            now = std::max(now + std::chrono::microseconds(1), next);
            for (const auto& [at, rank] : ranks_) {
                rank->handle_timeout(now);
                take_from_rank(at);
            }
            for (const auto& [at, node] : switches_) {
                node->handle_timeout(outbox_, now);
                take_from_switch(at);
            }
        }
        now = end;
    }
    void give(const Flight& flight) {
        Bytes bytes = flight.bytes;
        const wire::Datagram datagram{.bytes = bytes, .capacity = bytes.size(), .from = &flight.from};
        if (const auto rank = ranks_.find(flight.to); rank != ranks_.end()) {
            rank->second->handle_datagram(datagram, now);
            take_from_rank(flight.to);
        } else if (const auto node = switches_.find(flight.to); node != switches_.end()) {
            node->second->handle_batch({&datagram, 1}, outbox_, now);
            take_from_switch(flight.to);
        }
    }
    template <class Message>
    void forge(const Message& message, const wire::Address& from, const wire::Address& to) {
        give({encoded(message, wire::least_question_bytes * std::is_same_v<Message, wire::Join>), from, to});
        carry();
    }
    void leave(std::uint16_t rank) {
        ranks_.at(rank_address(rank))->end();
        take_from_rank(rank_address(rank));
        carry();
    }

    [[nodiscard]] ShardMachine& node(const wire::Address& at) { return *switches_.at(at); }
    [[nodiscard]] ChannelMachine& rank(std::uint16_t number) { return *ranks_.at(rank_address(number)); }
    [[nodiscard]] bool is_ready(std::uint16_t number) const { return told(number, Kind::ready); }
    [[nodiscard]] bool has_failed(std::uint16_t number) const { return told(number, Kind::failed); }
    [[nodiscard]] std::string error(std::uint16_t number) {
        for (const ChannelEvent& event : events_[rank_address(number)]) {
            if (event.kind == Kind::failed) return error_of(event.cause, rank(number).config()).text;
        }
        return "none";
    }
    // The channel's members at this switch; 0: it does not know the channel.
    [[nodiscard]] std::uint32_t members(const wire::Address& at) {
        std::uint32_t found = 0;
        node(at).tree().for_each([&](const control::Branch& branch) { found = branch.ready() ? branch.receivers : 0; });
        return found;
    }
    template <class Message>
    [[nodiscard]] std::vector<Message> sent_to(const wire::Address& to) const {
        std::vector<Message> found;
        for (const Flight& flight : recorded) {
            if (flight.to != to) continue;
            if (auto message = wire::decode<Message>(flight.bytes)) found.push_back(*std::move(message));
        }
        return found;
    }

    void submit(std::uint16_t number, Floats& tensor) {
        ASSERT_TRUE(rank(number).submit(tensor, now, never));
        take_from_rank(rank_address(number));
        carry();
    }
    [[nodiscard]] std::size_t completed(std::uint16_t number) {
        return static_cast<std::size_t>(
            std::ranges::count(events_[rank_address(number)], Kind::completed, &ChannelEvent::kind));
    }

    std::vector<Flight> recorded;
    std::map<wire::Address, std::string> called;  // what a rank states
    Time now = start_time;

  private:
    [[nodiscard]] bool told(std::uint16_t number, Kind kind) const {
        const auto events = events_.find(rank_address(number));
        return events != events_.end() &&
               std::ranges::any_of(events->second, [kind](const ChannelEvent& event) { return event.kind == kind; });
    }
    void send(Bytes bytes, const wire::Address& from, const wire::Address& to) {
        recorded.push_back({bytes, from, to});
        flights_.push_back({std::move(bytes), from, to});
    }
    void take_from_rank(const wire::Address& at) {
        ChannelMachine& machine = *ranks_.at(at);
        while (auto event = machine.poll_event(now)) {
            if (event->kind == Kind::differs) machine.state(called[at], now);
            events_[at].push_back(*std::move(event));
        }
        machine.transmit_control(list_);
        while (machine.transmit(list_, 64, now).no_room) list_.flush();
        list_.flush();
        for (Packet& packet : std::exchange(list_.packets, {})) send(std::move(packet.bytes), at, packet.to);
    }
    void take_from_switch(const wire::Address& at) {
        while (switches_.at(at)->poll_event()) {
        }
        for (testing::RecordingOutbox::Packet& packet : outbox_.flush()) send(std::move(packet.bytes), at, packet.to);
    }
    void carry() {
        for (int count = 0; !flights_.empty() && count < 10'000; ++count) {
            const Flight flight = std::move(flights_.front());
            flights_.pop_front();
            now += std::chrono::microseconds(1);
            give(flight);
        }
    }

    std::map<wire::Address, std::unique_ptr<ShardMachine>> switches_;
    std::map<wire::Address, std::unique_ptr<ChannelMachine>> ranks_;
    std::map<wire::Address, std::vector<ChannelEvent>> events_;
    std::deque<Flight> flights_;
    testing::RecordingOutbox outbox_;
    List list_;
};

std::shared_ptr<const protocol::Membership> star(unsigned ranks) {
    return std::make_shared<const protocol::Membership>(*protocol::Membership::star(ranks));
}

// Two ranks of a job with a key that have joined.
struct Job {
    explicit Job(const std::shared_ptr<const crypto::TenantKey>& key = shared(vision)) {
        net.set_switch(leaf_address, switch_config("leaf", 1));
        for (std::uint16_t rank = 0; rank < 2; ++rank) net.add_rank(star(2), rank, key);
        net.pass(seconds(1));
    }
    void expect_running() {
        EXPECT_EQ(net.members(leaf_address), 2U);
        for (std::uint16_t rank = 0; rank < 2; ++rank) {
            EXPECT_TRUE(net.is_ready(rank));
            EXPECT_FALSE(net.has_failed(rank)) << net.error(rank);
            EXPECT_TRUE(net.rank(rank).member_counters().joins > 0);
        }
    }
    Net net;
};

TEST(Codes, JobWithAKeyJoinsASwitchWithItsTenant) {
    Job job;
    job.expect_running();
    job.net.pass(seconds(30));
    job.expect_running();
    EXPECT_EQ(job.net.node(leaf_address).tree().counters().unproven, 0U);
    EXPECT_EQ(job.net.rank(0).strays(), 0U);
    job.net.leave(0);
    EXPECT_EQ(job.net.node(leaf_address).tree().counters().left, 1U);
}

TEST(Codes, H100_JobWithoutAKeyIsRefusedWithOneText) {
    Job job(nullptr);
    EXPECT_EQ(job.net.error(0), "no such job or key");
    EXPECT_EQ(job.net.node(leaf_address).tree().channels(), 0U);
    EXPECT_GE(job.net.node(leaf_address).tree().counters().unproven, 2U);
    const auto notice = job.net.node(leaf_address).poll_notice();
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->reason, "it has no key");
    EXPECT_FALSE(job.net.node(leaf_address).poll_notice()) << "one a second";
}

TEST(Codes, H100_JobWithAWrongKeyLearnsItAfterTheHoldTime) {
    crypto::TenantKey wrong = vision;
    wrong.key.bytes().back() = std::byte{1};
    Job job(shared(wrong));
    EXPECT_FALSE(job.net.has_failed(0)) << "anybody may have sent this REFUSED";
    job.net.pass(seconds(4));
    EXPECT_EQ(job.net.error(0), "no such job or key");
    EXPECT_EQ(job.net.node(leaf_address).tree().channels(), 0U);
}

TEST(Codes, H100_JobWithAKeyJoinsNoOpenSwitch) {
    Net net;
    ShardMachineConfig open = switch_config("leaf", 1);
    open.tree.tenants = nullptr;
    net.set_switch(leaf_address, open);
    net.add_rank(star(1), 0, shared(vision));
    net.pass(seconds(1));
    EXPECT_FALSE(net.has_failed(0));
    net.pass(seconds(4));
    EXPECT_THAT(net.error(0), HasSubstr("asks for no key"));
    EXPECT_EQ(net.node(leaf_address).tree().counters().joins, 0U);
}

TEST(Codes, H100_ReplayOfARecordedSessionChangesNothing) {
    Job job;
    for (const Net::Flight& flight : std::vector(job.net.recorded)) job.net.give(flight);
    job.net.pass(seconds(10));
    job.expect_running();
    job.net.leave(0);
    job.net.leave(1);
    const auto recorded = job.net.recorded;
    const std::uint64_t joins = job.net.node(leaf_address).tree().counters().joins;
    for (int round = 0; round < 20; ++round) {
        for (const Net::Flight& flight : recorded) job.net.give(flight);
        job.net.pass(milliseconds(500));
        EXPECT_EQ(job.net.node(leaf_address).tree().channels(), 0U) << "nobody came back in round " << round;
    }
    EXPECT_GT(job.net.node(leaf_address).tree().counters().joins, joins) << "some had a valid cookie and a right code";
}

TEST(Codes, H101_ForgedMessagesOfWhoReadsPacketsChangeNothing) {
    Job job;
    const wire::Join join = job.net.sent_to<wire::Join>(leaf_address).back();
    const wire::Address member = rank_address(1);
    const std::uint64_t nonce = join.nonce;
    const wire::ChannelTerms& terms = join.terms;
    for (std::uint32_t epoch = join.epoch; epoch < join.epoch + 40; ++epoch) {
        job.net.forge(wire::Leave{.nonce = nonce,
                                  .job = terms.job,
                                  .token = terms.token,
                                  .channel = terms.channel,
                                  .epoch = epoch + 1000,
                                  .unit = 0,
                                  .member = 1},
                      member, leaf_address);
        wire::Join forged = join;
        forged.epoch = epoch + 1000;
        forged.terms.lanes = 9;
        job.net.forge(forged, member, leaf_address);
        job.net.forge(wire::Refused{.nonce = nonce,
                                    .job = terms.job,
                                    .token = terms.token,
                                    .channel = terms.channel,
                                    .reason = wire::Refusal::terms,
                                    .text = "forged"},
                      leaf_address, member);
        job.net.forge(wire::Joined{.nonce = nonce,
                                   .job = terms.job,
                                   .token = terms.token,
                                   .channel = terms.channel,
                                   .epoch = epoch,
                                   .number = epoch + 1000,
                                   .ready = false,
                                   .missing_units = 1,
                                   .edges = {wire::Edge{}}},
                      leaf_address, member);
        job.net.forge(wire::Retry{.nonce = nonce,
                                  .job = terms.job,
                                  .token = terms.token,
                                  .channel = terms.channel,
                                  .cookie = epoch + 1,
                                  .boot = epoch + 1,
                                  .name = "leaf"},
                      leaf_address, member);
        job.net.forge(
            wire::Retry{
                .nonce = nonce, .job = terms.job, .token = terms.token, .channel = terms.channel, .cookie = epoch + 1},
            leaf_address, member);
        job.net.pass(milliseconds(200));
        EXPECT_EQ(job.net.members(leaf_address), 2U);
    }
    job.expect_running();
}

TEST(Codes, JobBelievesARestartedSwitchThatItsSumsAreLost) {
    Job job;
    const auto old = job.net.recorded;
    job.net.set_switch(leaf_address, switch_config("leaf", 2));
    for (const Net::Flight& flight : old) job.net.give(flight);
    job.net.pass(seconds(1));
    EXPECT_GE(job.net.node(leaf_address).tree().counters().refused, 1U) << "H26";
    EXPECT_TRUE(job.net.has_failed(0) && job.net.has_failed(1));
}

// Its statements do: nobody without the key can make them.
TEST(Codes, H102_ForgedWaitEndsNoOperation) {
    Job job;
    Floats first(64), second(64);
    job.net.submit(0, first);
    Bytes gradient;
    for (const Net::Flight& flight : job.net.recorded) {
        if (is_gradient(flight.bytes)) gradient = flight.bytes;
    }
    ASSERT_FALSE(gradient.empty());
    for (int round = 0; round < 10; ++round) {
        job.net.give({mismatch_at(gradient), leaf_address, rank_address(0)});
        job.net.pass(milliseconds(300));
    }
    job.expect_running();
    job.net.submit(1, second);
    job.net.pass(seconds(1));
    EXPECT_EQ(job.net.completed(0), 1U);
    EXPECT_EQ(job.net.completed(1), 1U);
}

TEST(Codes, H102_RanksThatCalledDifferentOperationsLearnItFromEachOther) {
    Job job;
    job.net.called[rank_address(0)] = "all_reduce of 64 float32";
    job.net.called[rank_address(1)] = "all_reduce of 640 float32";
    Floats first(64), second(640);
    first.operation = 1, second.operation = 2;
    job.net.submit(0, first);
    job.net.submit(1, second);
    job.net.pass(seconds(3));
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
        EXPECT_TRUE(job.net.has_failed(rank)) << rank;
        EXPECT_THAT(job.net.error(rank), HasSubstr("all_reduce of 640 float32"));
    }
}

// It has no key, so it still believes what answers from where a JOIN went.
// Keys of the jobs that a switch in the path admits. It has the file of the switch `name`.
std::vector<std::uint32_t> keys_in_the_path(const Net& net, const std::string& name, std::uint8_t level = 0) {
    control::InPathAgent agent(4, seconds(3), level);
    agent.set_tenants(tenants_at(name));
    std::vector<std::uint32_t> keys;
    for (const Net::Flight& flight : net.recorded) {
        const auto change =
            agent.handle_message({.bytes = flight.bytes, .from = flight.from, .to = flight.to}, net.now);
        if (change.change == control::InPathAgent::Change::admit) keys.push_back(change.job.key_id);
    }
    return keys;
}

TEST(Codes, SwitchInThePathLearnsJobsFromMessagesWithCodes) {
    Job job;
    EXPECT_THAT(keys_in_the_path(job.net, "leaf"), ElementsAre(vision.id));
    EXPECT_THAT(keys_in_the_path(job.net, "another"), ElementsAre(0U)) << "it cannot check the codes";
}

// ------------------------------------------------------------------------------------------------------ Two levels

// Two racks of one rank below a spine.
struct TwoLevels {
    explicit TwoLevels(std::shared_ptr<const crypto::TenantKey> parent_key) {
        ShardMachineConfig leaf = switch_config("leaf", 1, spine_address);
        leaf.tree.parent_key = std::move(parent_key);
        ShardMachineConfig other = leaf;
        other.tree.secret = {3, 3};
        net.set_switch(leaf_address, leaf);
        net.set_switch(address("10.0.0.3:4790"), other);
        net.set_switch(spine_address, switch_config("spine", 2));
        const auto racks =
            std::make_shared<const protocol::Membership>(*protocol::Membership::make({{.ranks = {0}}, {.ranks = {1}}}));
        net.add_rank(racks, 0, shared(vision));
        ChannelMachineConfig second = config_of(racks, 1);
        second.switch_address = address("10.0.0.3:4790");
        second.nonce = 1001;
        second.key = shared(vision);
        net.add(1, second);
    }
    Net net;
};

TEST(Codes, LeavesJoinTheirParentWithTheFabricsKeyForTheTenant) {
    TwoLevels job(shared(key_for_switch(fabric, "spine")));
    job.net.pass(seconds(1));
    EXPECT_EQ(job.net.members(spine_address), 2U);
    EXPECT_TRUE(job.net.is_ready(0) && job.net.is_ready(1));
    EXPECT_THAT(keys_in_the_path(job.net, "spine", 1), ElementsAre(vision.id));
    const auto recorded = job.net.recorded;
    for (const Net::Flight& flight : recorded) job.net.give(flight);
    job.net.pass(seconds(10));
    EXPECT_EQ(job.net.members(spine_address), 2U);
    EXPECT_FALSE(job.net.has_failed(0) || job.net.has_failed(1));
    job.net.leave(0);
    job.net.leave(1);
    EXPECT_EQ(job.net.node(spine_address).tree().counters().left, 2U) << "a LEAVE of a switch has a code too";
}

TEST(Codes, H100_LeafWithoutAKeyForItsParentTellsItsMembers) {
    TwoLevels job(nullptr);
    job.net.pass(seconds(5));
    EXPECT_EQ(job.net.node(spine_address).tree().channels(), 0U);
    EXPECT_THAT(job.net.error(0), HasSubstr("asks for a key at 'spine'"));
}

TEST(Codes, H100_LeafOfATenantRefusesAnOpenParent) {
    TwoLevels job(shared(key_for_switch(fabric, "spine")));
    ShardMachineConfig open = switch_config("spine", 2);
    open.tree.tenants = nullptr;
    job.net.set_switch(spine_address, open);
    job.net.pass(seconds(5));
    EXPECT_EQ(job.net.node(spine_address).tree().channels(), 0U);
    EXPECT_THAT(job.net.error(0), HasSubstr("asks for no key"));
}

// ---------------------------------------------------------------------------------------------------- Servers in ranks

TEST(Codes, LastSwitchJoinsTheServerInARankWithTheTenantsKeyAtThatSwitch) {
    Net net;
    net.set_switch(leaf_address, switch_config("leaf", 1));
    ChannelMachineConfig config = config_of(one_rank(), 0);
    config.hosts_server = true;
    config.key = shared(vision);
    config.secret = {5, 5};
    config.nonce = 1000;
    config.terms.server = control::endpoint_of(rank_address(0));
    net.add(0, config);
    net.pass(seconds(5));
    EXPECT_TRUE(net.is_ready(0));
    EXPECT_EQ(net.members(leaf_address), 1U);
    wire::Join forged = join_of_last_switch(config);
    forged.cookie = control::Gatekeeper(config.secret, {}, {}, control::Gatekeeper::short_period(seconds(3)))
                        .cookie_of(control::Gatekeeper::Question::join, address("10.0.0.99:4790"), net.now);
    forged.epoch = 1;
    const std::uint64_t strays = net.rank(0).strays();
    net.forge(forged, address("10.0.0.99:4790"), rank_address(0));
    EXPECT_EQ(net.rank(0).strays(), strays + 1);
}

}  // namespace
}  // namespace atp::endpoint
