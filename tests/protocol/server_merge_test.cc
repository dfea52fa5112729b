// SPDX-License-Identifier: Apache-2.0
// Compares the server's rule for merging packets with the simplest model, a set of workers. Worker r contributes 2^r,
// so a sum shows which workers it includes and how often.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support/server_bench.h"

namespace atp::protocol {
namespace {

using testing::Bytes;
using testing::ServerAnswer;
using testing::ServerBench;
using Ranks = std::set<std::uint16_t>;

// The workers that a packet includes: members of one unit, or whole units.
struct Contribution {
    bool whole = false;
    std::uint32_t units = 0;
    std::uint32_t members = 0;
};

// A random number in [0, limit). RapidCheck starts with small values by default; these ranges are small enough to be
// used in full from the start.
template <class T>
T below(T limit) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(0, limit));
}

// At most `most_units` units (1 or 4) of at most four workers. Sums are below 2^16: float32 represents them exactly.
std::vector<Unit> some_units(int most_units) {
    std::vector<Unit> units;
    std::uint16_t rank = 0;
    const int count = 1 + below(most_units);
    for (int unit = 0; unit < count; ++unit) {
        units.emplace_back();
        const int size = 1 + below(4);
        for (int member = 0; member < size; ++member) units.back().ranks.push_back(rank++);
    }
    return units;
}

std::uint32_t some_bits(std::uint32_t mask) {
    const std::uint32_t bits = below(16U) & mask;
    return bits == 0 ? mask & (~mask + 1) : bits;  // a packet includes at least one worker
}

Contribution some_contribution(const Membership& members) {
    Contribution some;
    some.whole = below(3) == 0;
    if (some.whole) {
        some.units = some_bits(members.all_units());
        return some;
    }
    const unsigned unit = below(members.units());
    some.units = 1U << unit;
    const bool single = below(2) == 0;
    const unsigned member = below(static_cast<unsigned>(members.unit(unit).ranks.size()));
    some.members = single ? 1U << member : some_bits(members.unit_mask(unit));
    return some;
}

Ranks ranks_of(const Contribution& contribution, const Membership& members) {
    Ranks ranks;
    for (std::uint16_t rank = 0; rank < members.workers(); ++rank) {
        const Place& place = members.place(rank);
        if ((contribution.units >> place.unit & 1U) == 0) continue;
        if (contribution.whole || (contribution.members >> place.member & 1U) != 0) ranks.insert(rank);
    }
    return ranks;
}

std::int32_t value_of(const Ranks& ranks) {
    std::int32_t value = 0;
    for (const std::uint16_t rank : ranks) value += 1 << rank;
    return value;
}

Bytes packet_of(const Contribution& contribution, const ServerBench& bench) {
    const std::int32_t value = value_of(ranks_of(contribution, bench.members));
    if (contribution.whole) return bench.units_gradient(contribution.units, 0, value);
    unsigned unit = 0;
    while ((contribution.units >> unit & 1U) == 0) ++unit;
    return bench.members_gradient(unit, contribution.members, 0, value);
}

Ranks ranks_of(const Membership& members) {
    Ranks all;
    for (std::uint16_t rank = 0; rank < members.workers(); ++rank) all.insert(rank);
    return all;
}

// Merges `set` into `in` by the rule of docs/spec/server.md. Returns true if `set` cannot be merged.
bool merge(Ranks& in, const Ranks& set) {
    const bool any_common = std::ranges::any_of(set, [&in](std::uint16_t rank) { return in.contains(rank); });
    if (!any_common) {
        in.insert(set.begin(), set.end());
        return false;
    }
    if (std::ranges::includes(set, in)) in = set;
    return !std::ranges::includes(in, set);
}

// Workers that receive a NACK among `answers`.
Ranks asked_in(const std::vector<ServerAnswer>& answers, const Membership& members) {
    Ranks asked;
    for (const ServerAnswer& answer : answers) {
        if (answer.header.type != ATP_TYPE_NACK) continue;
        const Ranks more = ranks_of({.units = answer.header.bitmap1, .members = answer.header.bitmap0}, members);
        asked.insert(more.begin(), more.end());
    }
    return asked;
}

void expect_ack_of_all(const std::vector<ServerAnswer>& answers, const Membership& members) {
    RC_ASSERT(answers.size() == 1U);
    RC_ASSERT(answers[0].header.type == ATP_TYPE_ACK);
    const auto all = static_cast<float>(value_of(ranks_of(members)));
    RC_ASSERT(answers[0].sums.at(0) == all);
    RC_ASSERT(answers[0].sums.at(1) == -all);
}

void check_random_sets(int most_units) {
    ServerBench bench(*Membership::make(some_units(most_units)));
    const Ranks all = ranks_of(bench.members);
    Ranks in;
    const int packets = below(40);
    for (int packet = 0; packet < packets && in != all; ++packet) {
        const Contribution contribution = some_contribution(bench.members);
        const bool unmergeable = merge(in, ranks_of(contribution, bench.members));
        // after the repeat interval of 1 ms, the server may answer every worker again
        bench.now += std::chrono::milliseconds(2);
        bench.handle(packet_of(contribution, bench));
        const auto answers = bench.answers();
        if (in == all) {
            expect_ack_of_all(answers, bench.members);
            return;
        }
        Ranks missing;
        if (unmergeable) std::ranges::set_difference(all, in, std::inserter(missing, missing.end()));
        RC_ASSERT(asked_in(answers, bench.members) == missing);
        RC_ASSERT(bench.server.base() == 0U);
    }
    for (const std::uint16_t rank : all) {
        if (!in.contains(rank)) bench.handle(bench.gradient(rank, 0, 1 << rank));
    }
    expect_ack_of_all(bench.answers(), bench.members);
}

RC_GTEST_PROP(ServerMerge, SetsOfOneLevelInAnyOrderCountEveryWorkerOnce, ()) { check_random_sets(1); }

RC_GTEST_PROP(ServerMerge, SetsOfTwoLevelsInAnyOrderCountEveryWorkerOnce, ()) { check_random_sets(4); }

// Returns one to three copies of each packet, in random order.
template <class Packet>
std::vector<Packet> duplicated_and_shuffled(const std::vector<Packet>& packets) {
    std::vector<Packet> all;
    for (const Packet& packet : packets) all.insert(all.end(), below<std::size_t>(3) + 1, packet);
    for (std::size_t left = all.size(); left > 1; --left) std::swap(all[left - 1], all[below(left)]);
    return all;
}

RC_GTEST_PROP(ServerMerge, DuplicatesChangeNothing, ()) {
    ServerBench bench(*Membership::make(some_units(4)));
    std::vector<Bytes> packets;
    for (const std::uint16_t rank : ranks_of(bench.members)) packets.push_back(bench.gradient(rank, 0, 1 << rank));
    for (const Bytes& packet : duplicated_and_shuffled(packets)) bench.handle(packet);
    expect_ack_of_all(bench.answers(), bench.members);
}

// Several fragments are in flight at once. Each must have its own record.
RC_GTEST_PROP(ServerMerge, FragmentsOfOneWindowHaveSeparateSums, ()) {
    ServerBench bench(*Membership::star(5));
    std::vector<std::pair<std::uint32_t, std::uint16_t>> packets;
    for (std::uint32_t seq = 0; seq < 4; ++seq) {
        for (const std::uint16_t rank : ranks_of(bench.members)) packets.emplace_back(seq, rank);
    }
    std::map<std::uint32_t, Ranks> in;
    for (const auto& [seq, rank] : duplicated_and_shuffled(packets)) {
        const bool completes = in[seq].size() == 4 && !in[seq].contains(rank);
        in[seq].insert(rank);
        bench.handle(bench.gradient(rank, seq, static_cast<std::int32_t>((seq + 1) << rank)));
        auto answers = bench.answers();
        // Of a fragment that three others overtake, the server asks for what is missing.
        std::erase_if(answers, [](const auto& answer) {
            return answer.header.type != ATP_TYPE_ACK && answer.header.type != ATP_TYPE_WAIT;
        });
        RC_ASSERT(answers.size() == (completes ? 1U : 0U));
        if (!completes) continue;
        RC_ASSERT(answers[0].header.seq == seq);
        RC_ASSERT(answers[0].sums.at(0) == static_cast<float>((seq + 1) * 31));
    }
    RC_ASSERT(bench.server.base() == 4U);
}

// --- single cases of the merge rule

TEST(ServerMerge, SupersetReplacesItsSubsets) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(bench.members_gradient(0, 0x3, 0, 3));
    EXPECT_EQ(bench.server.counters().replaced, 1U);
    bench.handle(bench.gradient(2, 0, 4));
    EXPECT_EQ(bench.answers().at(0).sums.at(0), 7.0F);
}

TEST(ServerMerge, SubsetIsADuplicate) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.members_gradient(0, 0x3, 0, 3));
    bench.handle(bench.gradient(0, 0, 1));
    EXPECT_EQ(bench.server.counters().duplicates, 1U);
}

TEST(ServerMerge, OverlappingSetIsDroppedAndMissingWorkersGetANack) {
    ServerBench bench(*Membership::star(4));
    bench.handle(bench.members_gradient(0, 0x3, 0, 3));
    bench.handle(bench.members_gradient(0, 0x6, 0, 6));
    EXPECT_EQ(bench.server.counters().overlapping, 1U);
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.bitmap0, 0xcU);
    EXPECT_EQ(answers[0].header.flags & ATP_FLAG_BYPASS, 0);
    EXPECT_EQ(answers[0].transmit.worker, ATP_WORKER_ALL);
}

// Floats of one rank of a member.
Bytes floats_of_rank(const ServerBench& bench, std::uint16_t worker, unsigned rank, bool last, float value) {
    Bytes bytes = bench.floats(worker, 0, value);
    bytes[ATP_OFFSET_PART] = static_cast<std::byte>(rank);
    const auto flags = static_cast<std::uint16_t>(ATP_FLAG_BYPASS | (last ? ATP_FLAG_LAST_RANK : 0));
    wire::store_u16(&bytes[ATP_OFFSET_FLAGS], flags);
    return bytes;
}

// docs/spec/hazards.md#h48
TEST(ServerMerge, H48_MemberIsIncludedWithTheLastOfItsRanksInAnyOrder) {
    std::vector<unsigned> order{1, 2, 3};
    do {
        ServerBench bench(*Membership::star(2));
        bench.handle(bench.floats(1, 0, 0.25F));
        (void)bench.answers();
        for (const unsigned rank : order) {
            EXPECT_EQ(bench.server.base(), 0U) << "rank " << rank << " is missing";
            const float value = rank == 1 ? 1e30F : rank == 2 ? 0.5F : -1e30F;
            for (int copies = 0; copies < 2; ++copies) {
                bench.handle(floats_of_rank(bench, 0, rank, rank == 3, value));
            }
        }
        EXPECT_EQ(bench.answers().at(0).sums.at(0), 0.75F);
    } while (std::ranges::next_permutation(order).found);
}

TEST(ServerMerge, IntegersOfOneRankAndFloatsOfNoRankBesideThoseOfOneAreNotAdded) {
    ServerBench bench(*Membership::star(2));
    Bytes integers = bench.gradient(0, 0, 1, ATP_FLAG_BYPASS);
    integers[ATP_OFFSET_PART] = std::byte{1};
    bench.handle(integers);
    EXPECT_EQ(bench.server.counters().refused, 1U);
    bench.handle(floats_of_rank(bench, 0, 1, false, 1));
    bench.handle(bench.floats(0, 0, 1));
    EXPECT_EQ(bench.server.counters().duplicates, 1U);
    EXPECT_EQ(bench.server.base(), 0U);
}

TEST(ServerMerge, WholeUnitsReplaceGradientsOfTheirMembers) {
    ServerBench bench(*Membership::racks(2, 2));
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(bench.members_gradient(1, 0x3, 0, 12));
    bench.handle(bench.units_gradient(0x3, 0, 15));
    EXPECT_EQ(bench.answers().at(0).sums.at(0), 15.0F);
    EXPECT_EQ(bench.server.counters().replaced, 1U);
}

}  // namespace
}  // namespace atp::protocol
