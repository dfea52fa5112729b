// SPDX-License-Identifier: Apache-2.0
// The model checker saves only the values that persist() names. These tests check that these values are the whole
// state: a restored machine behaves like the original, and every value is saved and restored.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "check/layout.h"
#include "check/model_tensor.h"
#include "check/state_archive.h"
#include "check/truth.h"
#include "endpoint/ack_gatherer.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "support/byte_archive.h"

namespace atp::check {
namespace {

struct Fixture {
    Fixture() : configuration(make()), layout(configuration), truth(configuration, layout.membership()) {
        for (unsigned rank = 0; rank < 2; ++rank) tensors.emplace_back(truth, false, rank, 0, std::uint8_t{8});
    }
    static Configuration make() {
        Configuration made;
        made.units = {{.workers = 2}};
        made.window_log2 = 1;
        made.tensors = {8};
        made.aggregators = 2;
        made.first_seq = 0xfffffffeU;
        made.values = Values::saturating;
        return made;
    }
    protocol::Worker worker(unsigned rank) {
        protocol::WorkerConfig config;
        config.channel = channel_of(configuration, 0, false);
        config.rank = static_cast<std::uint16_t>(rank);
        config.place = layout.membership().place(config.rank);
        config.senders = protocol::SenderMasks(layout.membership(), config.rank);
        return protocol::Worker(config);
    }
    protocol::Server server() const {
        protocol::ServerConfig config;
        config.channel = channel_of(configuration, 0, false);
        config.scale = 1;
        return protocol::Server(config, layout.membership());
    }
    protocol::Switch aggregating_switch() const {
        protocol::Switch made({.aggregators = 2, .lanes = model_lanes, .jobs = 1});
        EXPECT_TRUE(made.admit(job_number(0), job_token(0, false), 0));
        return made;
    }

    Configuration configuration;
    Layout layout;
    Truth truth;
    std::vector<ModelTensor> tensors;
};

using Packet = Bytes;

std::vector<Packet> drain(protocol::Worker& worker, Time now) {
    std::vector<Packet> sent;
    Packet buffer(worker.packet_bytes());
    while (const auto size = worker.poll_transmit(buffer, now)) {
        sent.emplace_back(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*size));
    }
    while (worker.poll_event()) {
    }
    return sent;
}

std::vector<Packet> drain(protocol::Server& server) {
    std::vector<Packet> sent;
    Packet buffer(server.packet_bytes());
    while (const auto out = server.poll_transmit(buffer)) {
        sent.emplace_back(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(out->size));
    }
    return sent;
}

// A star of two workers in a random network; each machine has a shadow. Before every step, the state of the original is
// restored into a newly constructed machine, the shadow. After the step, both must have the same state and the same
// output.
class Shadowed {
  public:
    explicit Shadowed(unsigned seed)
        : random_(seed), workers_{f_.worker(0), f_.worker(1)}, server_(f_.server()), switch_(f_.aggregating_switch()) {
        for (unsigned rank = 0; rank < 2; ++rank) {
            EXPECT_TRUE(workers_[rank].submit(f_.tensors[rank], now_, now_ + std::chrono::hours(1)));
            for (Packet& sent : drain(workers_[rank], now_)) up_.push_back(std::move(sent));
        }
    }

    [[nodiscard]] bool done() const { return workers_[0].idle() && workers_[1].idle(); }
    // For tests of a single state.
    [[nodiscard]] protocol::Worker& worker() { return workers_[0]; }
    [[nodiscard]] protocol::Server& server() { return server_; }
    [[nodiscard]] protocol::Switch& aggregating_switch() { return switch_; }
    [[nodiscard]] Fixture& fixture() { return f_; }

    void step() {
        now_ += std::chrono::microseconds(random_() % 700);
        const unsigned dice = random_() % 16;
        if (dice == 0) return timeouts();
        std::vector<Packet>& from = random_() % 2 == 0 ? (up_.empty() ? down_ : up_) : (down_.empty() ? up_ : down_);
        if (from.empty()) return timeouts();
        const std::size_t at = random_() % from.size();
        Packet packet = from[at];
        if (dice != 1) from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));  // 1: a duplicate
        if (dice == 2) return;                                                      // lost
        to_switch(std::move(packet));
    }

  private:
    void timeouts() {
        for (unsigned rank = 0; rank < 2; ++rank) {
            protocol::Worker shadow = f_.worker(rank);
            ASSERT_TRUE(testing::copy_state(workers_[rank], shadow));
            ASSERT_EQ(shadow.poll_timeout(), workers_[rank].poll_timeout());
            now_ = std::max(now_, std::min(workers_[rank].poll_timeout(), now_ + std::chrono::milliseconds(5)));
            shadow.handle_timeout(now_);
            workers_[rank].handle_timeout(now_);
            compare_worker(rank, shadow);
        }
    }

    void compare_worker(unsigned rank, protocol::Worker& shadow) {
        std::vector<Packet> sent = drain(workers_[rank], now_);
        ASSERT_EQ(drain(shadow, now_), sent);
        ASSERT_EQ(testing::state_of(shadow), testing::state_of(workers_[rank]));
        for (Packet& packet : sent) up_.push_back(std::move(packet));
    }

    void to_switch(Packet packet) {
        protocol::Switch shadow = f_.aggregating_switch();
        ASSERT_TRUE(testing::copy_state(switch_, shadow));
        packet.resize(ATP_HEADER_BYTES + model_lanes * ATP_LANE_BYTES);
        Packet copy = packet;
        const auto size = [&] {
            const auto lanes_field = wire::load_u8(packet.data() + ATP_OFFSET_LANES);
            const auto type = wire::load_u8(packet.data() + ATP_OFFSET_TYPE);
            const bool lanes = lanes_field != ATP_DTYPE_NONE && type != ATP_TYPE_NACK;
            return lanes ? static_cast<std::uint32_t>(packet.size()) : ATP_HEADER_BYTES;
        }();
        const auto capacity = static_cast<std::uint32_t>(packet.size());
        protocol::PacketBuffer mine{
            .data = packet.data(), .size = size, .capacity = capacity, .congested = false, .verdict = {}};
        protocol::PacketBuffer other{
            .data = copy.data(), .size = size, .capacity = capacity, .congested = false, .verdict = {}};
        switch_.handle_packet(mine, now_);
        shadow.handle_packet(other, now_);
        ASSERT_EQ(mine.verdict.event, other.verdict.event);
        ASSERT_EQ(mine.size, other.size);
        packet.resize(mine.size);
        copy.resize(other.size);
        ASSERT_EQ(packet, copy);
        ASSERT_EQ(testing::state_of(shadow), testing::state_of(switch_));
        if (mine.verdict.route == protocol::Route::up) to_server(packet);
        if (mine.verdict.route == protocol::Route::down) to_workers(packet, mine.verdict.worker);
    }

    void to_server(Packet packet) {
        protocol::Server shadow = f_.server();
        ASSERT_TRUE(testing::copy_state(server_, shadow));
        Packet copy = packet;
        server_.handle_packet(packet, false, now_);
        shadow.handle_packet(copy, false, now_);
        std::vector<Packet> sent = drain(server_);
        ASSERT_EQ(drain(shadow), sent);
        ASSERT_EQ(testing::state_of(shadow), testing::state_of(server_));
        for (Packet& answer : sent) down_.push_back(std::move(answer));
    }

    void to_workers(const Packet& packet, std::uint16_t only) {
        for (unsigned rank = 0; rank < 2; ++rank) {
            if (only != ATP_WORKER_ALL && only != rank) continue;
            protocol::Worker shadow = f_.worker(rank);
            ASSERT_TRUE(testing::copy_state(workers_[rank], shadow));
            Packet mine = packet;
            Packet copy = packet;
            workers_[rank].handle_packet(mine, false, now_);
            shadow.handle_packet(copy, false, now_);
            compare_worker(rank, shadow);
        }
    }

    Fixture f_;
    std::mt19937 random_;
    Time now_ = model_now;
    std::array<protocol::Worker, 2> workers_;
    protocol::Server server_;
    protocol::Switch switch_;
    std::vector<Packet> up_;
    std::vector<Packet> down_;
};

TEST(Persist, RestoredMachinesContinueLikeTheOriginals) {
    for (unsigned seed = 1; seed <= 40 && !::testing::Test::HasFatalFailure(); ++seed) {
        Shadowed system(seed);
        unsigned steps = 0;
        for (; steps < 4000 && !system.done() && !::testing::Test::HasFatalFailure(); ++steps) system.step();
        EXPECT_TRUE(system.done()) << "seed " << seed;
    }
}

// Loads a state with one value changed and saves it again: the change must be saved.
class FlippingReader {
  public:
    static constexpr bool reads = true;

    FlippingReader(std::span<const std::byte> from, std::size_t flip) : from_(from), flip_(flip) {}
    template <class T>
    void value(T& item) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are saved as they are
        take(&item, sizeof item,
             !std::is_pointer_v<T> && !std::is_enum_v<T> && !std::is_same_v<T, bool> && !is_count<T>);
    }
    void time(Time& item) { take(&item, sizeof item, true); }
    void stamp_us(std::uint32_t& item) { take(&item, sizeof item, true); }
    void unread(auto& item) { value(item); }
    void bytes(std::span<std::byte> item) { take(item.data(), item.size(), true); }
    [[nodiscard]] bool flipped() const { return flipped_; }
    [[nodiscard]] std::size_t values() const { return values_; }

  private:
    // Values that determine the layout, such as flags of optional parts and counts of queues, are not changed alone.
    template <class T>
    static constexpr bool is_count = std::is_integral_v<T> && sizeof(T) == sizeof(std::uint64_t);

    void take(void* to, std::size_t size, bool may_flip) {
        if (size > from_.size()) return;
        std::memcpy(to, from_.data(), size);
        from_ = from_.subspan(size);
        if (values_++ != flip_ || !may_flip || size == 0) return;
        auto* first = static_cast<unsigned char*>(to);
        first[size - 1] ^= 0x01U;
        flipped_ = true;
    }

    std::span<const std::byte> from_;
    std::size_t flip_;
    std::size_t values_ = 0;
    bool flipped_ = false;
};

class CountingReader {
  public:
    static constexpr bool reads = true;

    explicit CountingReader(std::span<const std::byte> from) : reader_(from) {}
    template <class T>
    void value(T& item) {
        ++values;
        reader_.value(item);
    }
    void time(Time& item) { value(item); }
    void stamp_us(std::uint32_t& item) { value(item); }
    void unread(auto& item) { value(item); }
    void bytes(std::span<std::byte> item) {
        ++values;
        reader_.bytes(item);
    }
    std::size_t values = 0;

  private:
    testing::ByteReader reader_;
};

template <class Machine, class Make>
std::size_t expect_every_value_to_count(Machine& machine, Make make) {
    const Bytes state = testing::state_of(machine);
    std::size_t flipped = 0;
    Machine counted = make();
    CountingReader counter(state);
    counted.persist(counter);
    for (std::size_t at = 0; at < counter.values; ++at) {
        Machine other = make();
        FlippingReader reader(state, at);
        other.persist(reader);
        if (!reader.flipped()) continue;
        if (reader.values() != counter.values) continue;  // the changed value determines which others exist
        ++flipped;
        EXPECT_NE(testing::state_of(other), state) << "value " << at;
    }
    return flipped;
}

TEST(Persist, EveryValueOfAStateChangesItsArchive) {
    Shadowed system(3);
    std::size_t switch_values = 0;
    for (unsigned step = 0; step < 25; ++step) {
        system.step();
        Fixture& fixture = system.fixture();
        EXPECT_GT(expect_every_value_to_count(system.worker(), [&] { return fixture.worker(0); }), 10U);
        EXPECT_GT(expect_every_value_to_count(system.server(), [&] { return fixture.server(); }), 3U);
        switch_values +=
            expect_every_value_to_count(system.aggregating_switch(), [&] { return fixture.aggregating_switch(); });
    }
    EXPECT_GT(switch_values, 100U);
}

TEST(Persist, EveryValueOfASliceChangesItsArchive) {
    Shadowed system(3);
    protocol::Switch& table = system.aggregating_switch();
    const auto make = [&] { return system.fixture().aggregating_switch(); };
    const std::size_t without = expect_every_value_to_count(table, make);
    table.set_slice(job_number(0), job_token(0, false), {.base = 1, .size = 2}, 1);
    EXPECT_EQ(expect_every_value_to_count(table, make), without + 7)
        << "the job, base and size of both ranges, and which streams passed";
}

TEST(Persist, EveryValueOfListsThatWaitChangesTheirArchive) {
    const Fixture fixture;
    wire::Join join;
    join.terms.job = job_number(0), join.terms.token = job_token(0, false), join.terms.channel = model_channel;
    join.terms.lanes = 8, join.terms.mask1 = 1;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .ranks = {0}}};
    control::Branch branch = control::Branch::of(join);
    branch.attach(join, wire::Address::loopback(wire::Family::ipv4, 1), model_now);
    const auto make = [] { return endpoint::AckGatherer(endpoint::usual_ack_hold); };
    endpoint::AckGatherer gatherer = make();
    for (const unsigned worker : {ATP_WORKER_ALL, 1U}) {
        for (std::uint32_t seq = 0; seq < 2; ++seq) {
            atp_header header = channel_of(fixture.configuration, 0, false).header_of(ATP_TYPE_ACK, seq);
            header.worker = static_cast<std::uint16_t>(worker);
            Bytes ack(ATP_HEADER_BYTES);
            wire::encode_header(header, ack);
            ASSERT_TRUE(gatherer.add(branch, ack, model_now));
        }
    }
    endpoint::AckGatherer shadow = make();
    ASSERT_TRUE(testing::copy_state(gatherer, shadow));
    EXPECT_EQ(shadow.poll_timeout(), model_now + endpoint::usual_ack_hold);
    EXPECT_EQ(expect_every_value_to_count(gatherer, make), 10U) << "five of each list, without counts and tokens";
    gatherer.close(control::key_of(join.terms));
    ASSERT_TRUE(testing::copy_state(gatherer, shadow));
    EXPECT_TRUE(shadow.empty());
}

TEST(StateArchive, TimesAreReducedToFourMoments) {
    for (const Moment moment : {Moment::past, Moment::timer, Moment::deadline, Moment::never}) {
        EXPECT_EQ(moment_of(time_of(moment), model_now), moment);
    }
    EXPECT_EQ(moment_of(model_now - std::chrono::seconds(5), model_now), Moment::past);
    EXPECT_EQ(moment_of(Time{}, model_now), Moment::past);
    EXPECT_EQ(moment_of(after_timeout, after_timeout), Moment::past);
    EXPECT_EQ(moment_of(after_deadline, after_timeout), Moment::deadline);
}

}  // namespace
}  // namespace atp::check
