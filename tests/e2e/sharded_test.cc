// SPDX-License-Identifier: Apache-2.0
// Results of reduce-scatter, all-gather and reduce on each placement of the ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "sharded.h"
#include "values.h"

namespace atp::test {
namespace {

class Sharded : public testing::TestWithParam<Placement> {};

// A value that no integer has, so that some fragments are sent as floats.
std::vector<float> input_of(std::uint32_t rank, std::size_t elements) {
    std::vector<float> values(elements);
    for (std::size_t at = 0; at < elements; ++at) {
        values[at] = std::sin(static_cast<float>(at * 3 + rank)) * 1e-2F;
        if (at % 1009 == 500) values[at] = rank == 1 ? 1e30F : -0.25F;
        if (at % 1511 == 700) values[at] = std::numeric_limits<float>::infinity();
    }
    return values;
}

TEST_P(Sharded, ReduceScatterHasTheBitsOfAnAllReduce) {
    const std::vector<Sizes> all = {{700, 700, 700, 700}, {1, 0, 3001, 64}, {0, 0, 0, 5}, {20000, 20000, 20000, 20000}};
    GetParam().run(4, small_options(), [&](Communicator& communicator) {
        for (const Sizes& sizes : all) {
            for (const Reduction reduction : {Reduction::sum, Reduction::average}) {
                const std::size_t elements = std::reduce(sizes.begin(), sizes.end());
                const std::size_t own = sizes[communicator.rank()];
                const std::vector<float> input = input_of(communicator.rank(), elements);
                std::vector<float> whole(elements);
                std::vector<float> part(own, -1.0F);
                if (!succeeds(communicator.all_reduce({input.data(), whole.data(), elements}, ElementType::float32,
                                                      reduction)))
                    return;
                if (!scatters(communicator, input, part, sizes, reduction)) return;
                const std::size_t first = first_of(sizes, communicator.rank());
                EXPECT_TRUE(own == 0 || std::memcmp(part.data(), whole.data() + first, own * sizeof(float)) == 0)
                    << own;
            }
        }
    });
}

TEST_P(Sharded, ReduceScatterSumsEveryType) {
    GetParam().run(3, small_options(), [](Communicator& communicator) {
        for (const ElementType type : numeric::element_types) {
            const Sizes sizes = {500, 70, 1000};
            Bytes input = tensor_of(type, communicator.rank(), 1570, 1);
            const Bytes sum = sum_of_ranks(type, Reduction::sum, 3, 1570, 1);
            const std::size_t width = numeric::bytes_of(type);
            const auto begin = static_cast<std::ptrdiff_t>(first_of(sizes, communicator.rank()) * width);
            const auto bytes = static_cast<std::ptrdiff_t>(sizes[communicator.rank()] * width);
            // In place: the result replaces the own block.
            if (!succeeds(communicator.reduce_scatter(input.data(), input.data() + begin, sizes, type, Reduction::sum)))
                return;
            const Bytes expected(sum.begin() + begin, sum.begin() + begin + bytes);
            const Bytes found(input.begin() + begin, input.begin() + begin + bytes);
            EXPECT_EQ(difference(expected, found, width), "") << to_string(type);
        }
    });
}

TEST_P(Sharded, AllGatherCopiesRawBytes) {
    const std::vector<Sizes> all = {
        {4000, 4000, 4000, 4000}, {1, 0, 9001, 64}, {0, 7, 0, 0}, {80000, 80000, 80000, 80001}};
    GetParam().run(4, small_options(), [&](Communicator& communicator) {
        for (const Sizes& sizes : all) {
            std::vector<std::uint8_t> own(sizes[communicator.rank()]);
            const auto byte = [](std::size_t rank, std::size_t at) {
                return static_cast<std::uint8_t>(at * 7 + rank * 31 + at / 256);
            };
            for (std::size_t at = 0; at < own.size(); ++at) own[at] = byte(communicator.rank(), at);
            std::vector<std::uint8_t> out(std::reduce(sizes.begin(), sizes.end()), 0xEE);
            if (!succeeds(communicator.all_gather(own.data(), out.data(), sizes))) return;
            std::size_t position = 0;
            for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
                for (std::size_t at = 0; at < sizes[rank]; ++at, ++position) {
                    ASSERT_EQ(out[position], byte(rank, at)) << "rank " << rank << " byte " << at;
                }
            }
        }
    });
}

TEST_P(Sharded, EveryOperationPassesTheOthers) { GetParam().run(4, small_options(), work_through); }

// The exponents and votes of sums pass between all-gathers. In each round another rank is late with each call.
TEST_P(Sharded, H61_VotesAndAllGathersKeepOneOrderWhenRanksAreLate) {
    GetParam().run(4, dynamic_options(), [](Communicator& communicator) {
        constexpr std::size_t each = 4'000;
        const std::uint32_t rank = communicator.rank();
        for (std::uint32_t round = 0; round < 4; ++round) {
            const auto call = [&](auto submit) {
                if (rank == round) std::this_thread::sleep_for(std::chrono::milliseconds(3));
                return submit();
            };
            const float unit = std::ldexp(1.0F, static_cast<int>(round) * 5 - 10);
            const std::vector<float> input(4 * each, static_cast<float>(rank + 1) * unit);
            std::vector<float> part(each);
            std::vector<float> whole(4 * each);
            std::vector<float> again(4 * each);
            std::vector<float> summed = input;
            std::vector<float> rooted = input;
            const Sizes bytes(4, each * sizeof(float));
            const comm::Buffer in_place{summed.data(), summed.data(), summed.size()};
            const comm::Buffer to_root{input.data(), rank == round ? rooted.data() : nullptr, input.size()};
            const std::vector works = {
                call([&] {
                    return communicator.reduce_scatter(input.data(), part.data(), Sizes(4, each), ElementType::float32,
                                                       Reduction::sum);
                }),
                call([&] { return communicator.all_gather(input.data(), whole.data(), bytes); }),
                call([&] { return communicator.all_reduce(in_place, ElementType::float32, Reduction::sum); }),
                call([&] { return communicator.all_gather(input.data(), again.data(), bytes); }),
                call([&] { return communicator.reduce(to_root, ElementType::float32, Reduction::sum, round); })};
            for (const auto& work : works) {
                if (!succeeds(work)) return;
            }
            EXPECT_EQ(part, std::vector<float>(each, 10 * unit));
            EXPECT_EQ(summed, std::vector<float>(4 * each, 10 * unit));
            EXPECT_EQ(rooted, rank == round ? std::vector<float>(4 * each, 10 * unit) : input);
            EXPECT_EQ(again, whole);
            for (std::size_t other = 0; other < 4; ++other) {
                EXPECT_EQ(whole[other * each], static_cast<float>(other + 1) * unit);
            }
        }
    });
}

TEST_P(Sharded, DifferentSizesAreAnErrorOnEveryRank) {
    GetParam().run(2, small_options(), [](Communicator& communicator) {
        const Sizes counts = communicator.rank() == 0 ? Sizes{1000, 1000} : Sizes{1000, 1400};
        const std::vector<float> input(2400, 1.0F);
        std::vector<float> part(1400);
        const Error error = error_of(
            communicator.reduce_scatter(input.data(), part.data(), counts, ElementType::float32, Reduction::sum));
        EXPECT_NE(error.reason, Reason::timed_out);
    });
}

INSTANTIATE_TEST_SUITE_P(Operations, Sharded, testing::ValuesIn(placements()), name_of);

}  // namespace
}  // namespace atp::test
