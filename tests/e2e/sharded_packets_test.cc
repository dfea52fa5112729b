// SPDX-License-Identifier: Apache-2.0
// Packets of reduce-scatter and all-gather: losses, waits, order, and how many there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "numeric/lanes32_switch.h"
#include "sharded.h"

namespace atp::test {
namespace {

TEST(Sharding, LostPacketsChangeNothing) {
    const auto body = [](Communicator& communicator) {
        constexpr std::size_t each = 20'000;
        const std::size_t world = communicator.world();
        const std::vector<float> input(world * each, static_cast<float>(communicator.rank() + 1));
        std::vector<float> part(each);
        std::vector<float> whole(world * each);
        if (!scatters(communicator, input, part, Sizes(world, each))) return;
        if (!succeeds(communicator.all_gather(input.data(), whole.data(), Sizes(world, each * sizeof(float))))) return;
        const std::size_t sum = world * (world + 1) / 2;
        EXPECT_EQ(part, std::vector<float>(each, static_cast<float>(sum)));
        for (std::size_t at = 0; at < whole.size(); ++at) {
            const std::size_t rank = at / each;
            ASSERT_EQ(whole[at], static_cast<float>(rank + 1)) << at;
        }
    };
    for (const double loss : {0.01, 0.05}) {
        const auto node = start(with_ports(small_switch(), {.loss = loss}));
        Job(3, {address_of(*node)}).run(body);
        on_full_hosts_at(address_of(*node))(4, small_options(), body);
    }
}

// Integers that a rank sends when it is told to.
class HeldTensor final : public protocol::PlainTensor {
  public:
    HeldTensor(std::vector<std::int32_t>& values, const std::atomic<bool>& released)
        : values_(values), released_(released) {}

    [[nodiscard]] std::uint64_t size() const override { return values_.size(); }
    [[nodiscard]] bool ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const override { return released_; }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        numeric::lanes_store(lanes.data(), lanes.size() / ATP_LANE_BYTES, values_.data() + first);
    }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        numeric::lanes_emit(values_.data() + first, lanes.size() / ATP_LANE_BYTES, lanes.data());
    }

  private:
    std::vector<std::int32_t>& values_;
    const std::atomic<bool>& released_;
};

// They have windows of their own.
TEST(Sharding, H61_AllGathersPassASumThatWaits) {
    const auto node = start(small_switch());
    for (const std::uint32_t channels : {1U, 3U}) {
        comm::Options options = small_options();
        options.channels = channels;
        Job(3, {address_of(*node)}, options).run([](Communicator& communicator) {
            constexpr std::size_t each = 5'000;
            const std::size_t world = communicator.world();
            std::atomic<bool> released = false;
            std::vector<std::int32_t> values(3 * each, 1);
            std::vector<std::unique_ptr<protocol::Tensor>> held;
            held.push_back(std::make_unique<HeldTensor>(values, released));
            const auto waiting =
                communicator.all_reduce(std::move(held), values.size(), ElementType::int32, Reduction::sum);
            ASSERT_TRUE(waiting);
            std::vector<std::uint8_t> whole(world * each);
            for (int call = 0; call < 3; ++call) {
                const std::vector<std::uint8_t> own(each, static_cast<std::uint8_t>(communicator.rank() + 1));
                if (!succeeds(communicator.all_gather(own.data(), whole.data(), Sizes(world, each)))) return;
                EXPECT_EQ(whole.front(), 1);
                EXPECT_EQ(whole.back(), world);
            }
            EXPECT_FALSE((*waiting)->done());
            released = true;
            communicator.feed()->advance();
            EXPECT_TRUE((*waiting)->wait());
            EXPECT_EQ(values, std::vector<std::int32_t>(3 * each, static_cast<std::int32_t>(world)));
        });
    }
}

// Both kinds in turn, several in flight.
TEST(Sharding, H61_BothKindsInFlightGiveRightResults) {
    const auto node = start(with_ports(small_switch(), {.loss = 0.01}));
    Job(3, {address_of(*node)}).run([](Communicator& communicator) {
        constexpr std::size_t each = 3'000;
        constexpr std::size_t calls = 6;
        const std::size_t world = communicator.world();
        std::vector<std::vector<float>> parts(calls, std::vector<float>(each));
        std::vector<std::vector<float>> wholes(calls, std::vector<float>(world * each));
        std::vector<std::vector<float>> inputs;
        std::vector<comm::Handle> works;
        for (std::size_t call = 0; call < calls; ++call) {
            inputs.emplace_back(world * each, static_cast<float>(communicator.rank() + call));
            const std::vector<float>& input = inputs.back();
            const auto scattered = communicator.reduce_scatter(input.data(), parts[call].data(), Sizes(world, each),
                                                               ElementType::float32, Reduction::sum);
            const auto gathered =
                communicator.all_gather(input.data(), wholes[call].data(), Sizes(world, each * sizeof(float)));
            ASSERT_TRUE(scattered && gathered);
            works.push_back(*scattered);
            works.push_back(*gathered);
        }
        for (const comm::Handle& work : works) ASSERT_TRUE(work->wait());
        for (std::size_t call = 0; call < calls; ++call) {
            EXPECT_EQ(parts[call], std::vector<float>(each, static_cast<float>(3 + 3 * call)));
            for (std::size_t rank = 0; rank < world; ++rank) {
                EXPECT_EQ(wholes[call][rank * each], static_cast<float>(rank + call));
            }
        }
    });
}

// Each rank sends its part of an all-gather once, and gets the parts of the others.
TEST(Sharding, OnlyTheOwnerSends) {
    const auto node = start(small_switch());
    Job(4, {address_of(*node)}).run([](Communicator& communicator) {
        constexpr std::size_t fragments = 40;
        const std::size_t lanes = small_lanes - (communicator.options().audit ? 1 : 0);
        const Sizes bytes(4, fragments * lanes * 4);
        const std::vector<std::uint8_t> own(bytes[0], 1);
        std::vector<std::uint8_t> whole(4 * bytes[0]);
        if (!succeeds(communicator.all_gather(own.data(), whole.data(), bytes))) return;
        constexpr std::size_t marks = 1;  // in the channel of other operations
        EXPECT_TRUE(eventually([&] { return counters_of(communicator).acks == 4 * fragments + marks; }))
            << counters_of(communicator).acks << " ACKs";
        EXPECT_EQ(counters_of(communicator).sent, fragments + marks);
        EXPECT_LE(counters_of(communicator).readies, 4 * 4 * fragments / small_window + 8);
    });
}

// A host sends the parts of its ranks, and gets the sums of its ranks, each once.
TEST(Sharding, HostsOfSeveralRanksCarryTheirPartsAlone) {
    run_on_full_hosts(6, small_options(), [](Communicator& communicator) {
        constexpr std::size_t each = 40'000;
        const std::vector<float> input(6 * each, static_cast<float>(communicator.rank() + 1));
        std::vector<float> part(each);
        std::vector<float> whole(6 * each);
        const bool speaks = !communicator.counters().empty();
        if (!succeeds(communicator.all_gather(input.data(), whole.data(), Sizes(6, each * sizeof(float))))) return;
        EXPECT_EQ(whole[2 * each], 3.0F);
        const auto udp = [&] { return communicator.counters().front().udp; };
        const auto bytes_of = [&](std::size_t parts) { return parts * each * sizeof(float); };
        // Results of other hosts, and 64 bytes of headers for each packet of 256.
        if (speaks) {
            EXPECT_TRUE(eventually([&] { return udp().received_bytes > bytes_of(4); }));
            EXPECT_LT(udp().sent_bytes, bytes_of(3));
        }
        // Where other programs use the processors, timers expire and packets are repeated: the best of some rounds
        // counts.
        std::uint64_t fewest = bytes_of(6);
        for (int round = 0; round < 5; ++round) {
            if (!succeeds(communicator.barrier())) return;
            const std::uint64_t before = speaks ? udp().received_bytes : 0;
            if (!scatters(communicator, input, part, Sizes(6, each))) return;
            EXPECT_EQ(part, std::vector<float>(each, 21.0F));
            if (!speaks) continue;
            EXPECT_TRUE(eventually([&] { return udp().received_bytes - before > bytes_of(2); }));
            fewest = std::min(fewest, udp().received_bytes - before);
        }
        EXPECT_TRUE(!speaks || fewest < bytes_of(5)) << fewest;
    });
}

}  // namespace
}  // namespace atp::test
