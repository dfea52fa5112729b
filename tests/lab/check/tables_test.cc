// SPDX-License-Identifier: Apache-2.0
// The tables and the arithmetic on which the checker's results depend.
#include "check/tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <vector>

#include "check/configuration.h"
#include "check/layout.h"
#include "check/truth.h"

namespace atp::check {
namespace {

std::vector<std::byte> bytes_of(std::uint32_t number) {
    std::vector<std::byte> bytes(number % 13);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (i % 4 * 8));
    return bytes;
}

TEST(BytePool, EqualStringsHaveOneNumberAndOthersAnother) {
    BytePool pool;
    std::set<std::vector<std::byte>> seen;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const std::vector<std::byte> item = bytes_of(i);
        const auto [number, fresh] = pool.intern(item);
        EXPECT_EQ(fresh, seen.insert(item).second);
        EXPECT_TRUE(std::ranges::equal(pool[number], item));
        EXPECT_EQ(pool.intern(item), std::pair(number, false));
    }
    EXPECT_EQ(pool.size(), seen.size());
}

TEST(KeyMap, GrowingMapKeepsTheFirstNumberOfEachKey) {
    KeyMap map;
    for (std::uint32_t i = 0; i < 20'000; ++i) EXPECT_EQ(map.insert(std::uint64_t{i} * 64, i), i);
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        EXPECT_EQ(map.insert(std::uint64_t{i} * 64, i + 1), i);
        EXPECT_EQ(map.find(std::uint64_t{i} * 64), i);
        EXPECT_EQ(map.find(std::uint64_t{i} * 64 + 1), no_number);
    }
    EXPECT_EQ(map.size(), 20'000U);
}

TEST(Hashing, EachInputBitChangesAboutHalfOfTheHash) {
    std::array<std::uint32_t, 9> words{};
    const std::uint64_t before = hash_words(words);
    for (std::size_t bit = 0; bit < words.size() * 32; ++bit) {
        words[bit / 32] ^= 1U << (bit % 32);
        const int flipped = std::popcount(before ^ hash_words(words));
        EXPECT_GT(flipped, 10) << bit;
        EXPECT_LT(flipped, 54) << bit;
        words[bit / 32] ^= 1U << (bit % 32);
    }
}

TEST(Truth, EveryMultisetOfWorkersHasItsOwnSum) {
    Configuration configuration;
    configuration.units = {{.workers = 2}, {.workers = 2}};
    configuration.tensors = {4};
    const Layout layout(configuration);
    const Truth truth(configuration, layout.membership());
    for (std::int32_t offset = 0; offset < 4; ++offset) {
        std::set<double> sums;
        std::size_t sets = 0;
        for (unsigned times = 0; times < 81; ++times) {  // each worker never, once or twice
            double sum = 0;
            for (unsigned rank = 0, rest = times; rank < 4; ++rank, rest /= 3) {
                sum += (rest % 3) * double{truth.value(false, rank, offset)};
            }
            sums.insert(sum);
            ++sets;
        }
        EXPECT_EQ(sums.size(), sets);
    }
}

// The hash of the protocol chooses the aggregators, by the token. If this fails after a change of the hash, the token
// in truth.cc must change as well.
TEST(Truth, SlotsAreApartOrShareAggregatorsAsTheConfigurationsIntend) {
    unsigned apart = 0;
    for (const Configuration& configuration : configurations(Extent::full)) {
        if (configuration.protocol != Protocol::atp) continue;
        if (configuration.slices && configuration.jobs > 1) continue;  // their slices tell which aggregators they share
        std::vector<std::uint32_t> indices;
        for (unsigned job = 0; job < configuration.jobs; ++job) {
            const protocol::ChannelConfig channel = channel_of(configuration, job, false);
            for (std::uint32_t slot = 0; slot < channel.window(); ++slot) indices.push_back(channel.index(slot, 0));
        }
        const std::set<std::uint32_t> used(indices.begin(), indices.end());
        EXPECT_EQ(used.size(), std::min<std::size_t>(indices.size(), configuration.aggregators)) << configuration.name;
        if (configuration.aggregators > 1 && configuration.has_own_aggregators()) ++apart;
        // Packets of the earlier incarnation meet those of the present one.
        if (configuration.earlier_incarnation) {
            EXPECT_EQ(channel_of(configuration, 0, true).index(configuration.first_seq, 0),
                      channel_of(configuration, 0, false).index(configuration.first_seq, 0))
                << configuration.name;
        }
    }
    EXPECT_GE(apart, 5U);
    // A slot that collides moves to the aggregator of the other.
    const protocol::ChannelConfig channel = channel_of(*find_configuration("star2-apart", Extent::full), 0, false);
    for (std::uint32_t slot = 0; slot < 2; ++slot) EXPECT_EQ(channel.index(slot, 1), channel.index(1 - slot, 0));
    // Of four slots, three share an aggregator.
    const protocol::ChannelConfig newer = channel_of(*find_configuration("star2-newer", Extent::full), 0, false);
    for (std::uint32_t slot = 2; slot < 4; ++slot) EXPECT_EQ(newer.index(slot, 0), newer.index(1, 0));
}

TEST(Truth, TokenTellsTheJobAndTheIncarnation) {
    std::set<std::uint64_t> tokens;
    for (unsigned job = 0; job < max_jobs; ++job) {
        for (const bool earlier : {false, true}) {
            const std::uint64_t token = job_token(job, earlier);
            EXPECT_TRUE(tokens.insert(token).second);
            EXPECT_EQ(job_of(token), job);
            EXPECT_EQ(is_earlier(token), earlier);
        }
    }
    const Configuration& incarnations = *find_configuration("incarnations2", Extent::quick);
    EXPECT_EQ(channel_of(incarnations, 0, false).job, channel_of(incarnations, 1, false).job);
    EXPECT_NE(channel_of(incarnations, 0, false).token, channel_of(incarnations, 1, false).token);
}

TEST(Layout, PacketsPassTheSwitchesInTheirPathInBothDirections) {
    Configuration configuration;
    configuration.units = {{.workers = 2}, {.workers = 1, .direct = true}};
    configuration.tensors = {1};
    const Layout plain(configuration);
    const unsigned worker = plain.worker(0, 0);
    ASSERT_NE(plain.above(worker), plain.top());
    EXPECT_EQ(plain.above(plain.above(worker)), plain.top());
    EXPECT_EQ(plain.above(plain.worker(0, 2)), plain.top());
    EXPECT_EQ(plain.next(plain.top(), plain.top(), plain.server(0)), plain.server(0));
    EXPECT_EQ(plain.node_at(plain.address_of(plain.top())), plain.top());

    configuration.pipelines = every_switch;
    const Layout layout(configuration);
    const unsigned top = layout.top();
    const unsigned rack = layout.next(worker, worker, top);
    const unsigned upper = layout.next(rack, worker, top);
    EXPECT_TRUE(layout.node(rack).is_pipeline && layout.node(upper).is_pipeline);
    EXPECT_EQ(layout.next(upper, worker, top), top);
    EXPECT_EQ(layout.next(top, top, worker), upper);
    EXPECT_EQ(layout.next(upper, top, worker), rack);
    EXPECT_EQ(layout.next(rack, top, worker), worker);
    EXPECT_EQ(layout.next(upper, top, layout.worker(0, 2)), layout.worker(0, 2));
    EXPECT_EQ(layout.server(0), top);
}

}  // namespace
}  // namespace atp::check
