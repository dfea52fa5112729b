// SPDX-License-Identifier: Apache-2.0
// All-reduces that the ranks fold, on each placement of the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "numeric/fold.h"
#include "sharded.h"

namespace atp::test {
namespace {

using numeric::FoldOperation;
using numeric::FoldType;

constexpr FoldType types[] = {FoldType::float32, FoldType::float64, FoldType::float16, FoldType::bfloat16,
                              FoldType::int32,   FoldType::int64,   FoldType::int8,    FoldType::uint8,
                              FoldType::int16,   FoldType::boolean};
constexpr FoldOperation operations[] = {FoldOperation::minimum, FoldOperation::maximum, FoldOperation::product,
                                        FoldOperation::bit_and, FoldOperation::bit_or,  FoldOperation::bit_xor,
                                        FoldOperation::sum};

// Any bytes are elements of any type.
std::vector<std::byte> bytes_of_rank(std::uint32_t rank, std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    for (std::size_t at = 0; at < bytes; ++at) all[at] = static_cast<std::byte>(at * 7 + rank * 31 + at / 256);
    return all;
}

std::vector<std::byte> folded_by_hand(FoldType type, FoldOperation operation, std::uint32_t ranks, std::size_t bytes) {
    std::vector<std::byte> result = bytes_of_rank(0, bytes);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
        numeric::fold(type, operation, result, bytes_of_rank(rank, bytes));
    }
    return result;
}

class Folded : public testing::TestWithParam<Placement> {};

TEST_P(Folded, EveryTypeAndOperationHasEqualBitsOnAllRanks) {
    GetParam().run(4, small_options(), [](Communicator& communicator) {
        for (const FoldType type : types) {
            for (const FoldOperation operation : operations) {
                if (!numeric::can_fold(type, operation)) continue;
                const std::size_t elements = 257;
                const std::size_t bytes = elements * bytes_of(type);
                const std::vector<std::byte> in = bytes_of_rank(communicator.rank(), bytes);
                std::vector<std::byte> out(bytes);
                const comm::Buffer buffer{in.data(), out.data(), elements};
                if (!succeeds(communicator.all_reduce(std::span(&buffer, 1), type, operation))) return;
                EXPECT_EQ(out, folded_by_hand(type, operation, 4, bytes))
                    << to_string(type) << ' ' << to_string(operation);
            }
        }
    });
}

TEST_P(Folded, TensorsOfOneCallAndTheLongestAreFoldedInPlace) {
    GetParam().run(3, small_options(), [](Communicator& communicator) {
        const auto rank = static_cast<std::int64_t>(communicator.rank());
        std::vector<std::int64_t> one{rank};
        std::vector<std::int64_t> two{-rank, 10 - rank};
        const std::vector<comm::Buffer> buffers{
            {one.data(), one.data(), 1}, {nullptr, nullptr, 0}, {two.data(), two.data(), 2}};
        if (!succeeds(communicator.all_reduce(buffers, FoldType::int64, FoldOperation::maximum))) return;
        EXPECT_EQ(one.front(), 2);
        EXPECT_EQ(two, (std::vector<std::int64_t>{0, 10}));

        std::vector<std::byte> longest = bytes_of_rank(communicator.rank(), comm::longest_fold);
        const comm::Buffer buffer{longest.data(), longest.data(), longest.size()};
        if (!succeeds(communicator.all_reduce(std::span(&buffer, 1), FoldType::uint8, FoldOperation::maximum))) return;
        EXPECT_EQ(longest, folded_by_hand(FoldType::uint8, FoldOperation::maximum, 3, comm::longest_fold));
    });
}

// Between them and behind them, other operations keep their order and their results.
TEST_P(Folded, OtherOperationsPassBetween) {
    GetParam().run(3, small_options(), [](Communicator& communicator) {
        for (int round = 0; round < 3; ++round) {
            std::vector<float> largest{static_cast<float>(communicator.rank())};
            std::vector<float> summed(700, 1.0F);
            std::vector<float> gathered(3);
            const std::vector<float> own{static_cast<float>(communicator.rank())};
            const comm::Buffer buffer{largest.data(), largest.data(), 1};
            const auto folded =
                communicator.all_reduce(std::span(&buffer, 1), FoldType::float32, FoldOperation::maximum);
            const auto sum = sum_in_place(communicator, summed);
            const auto gather = communicator.all_gather(own.data(), gathered.data(), Sizes(3, sizeof(float)));
            if (!succeeds(folded) || !succeeds(sum) || !succeeds(gather)) return;
            EXPECT_EQ(largest.front(), 2);
            EXPECT_EQ(summed, std::vector<float>(700, 3.0F));
            EXPECT_EQ(gathered, (std::vector<float>{0, 1, 2}));
        }
    });
}

// Only the reduction or only the type differs.
TEST_P(Folded, DifferentReductionsFailOnEveryRank) {
    struct Row {
        FoldType type;
        FoldOperation operation;
        std::string name;
    };
    for (const Row& row : {Row{FoldType::float32, FoldOperation::minimum, "minimum"},
                           Row{FoldType::int32, FoldOperation::maximum, "int32"}}) {
        GetParam().run(3, small_options(), [&](Communicator& communicator) {
            float value = 1;
            const comm::Buffer buffer{&value, &value, 1};
            const bool odd = communicator.rank() == 1;
            const auto work = communicator.all_reduce(std::span(&buffer, 1), odd ? row.type : FoldType::float32,
                                                      odd ? row.operation : FoldOperation::maximum);
            const Error error = error_of(work);
            EXPECT_EQ(value, 1) << "something came of it";
            // A rank that meets the mismatch in the memory of its host leaves before the others know why.
            if (error.reason == Reason::refused || error.reason == Reason::closed || says(error, "left the job"))
                return;
            EXPECT_EQ(error.reason, Reason::mismatched) << to_string(error);
            EXPECT_TRUE(says(error, "make all ranks call the same")) << to_string(error);
            EXPECT_TRUE(says(error, row.name)) << to_string(error);
        });
    }
}

TEST_P(Folded, FactorsOfSumsMustBeEqual) {
    GetParam().run(2, small_options(), [](Communicator& communicator) {
        std::vector<float> values(300, 3.0F);
        const comm::Buffer buffer{values.data(), values.data(), values.size()};
        if (!succeeds(communicator.all_reduce(buffer, ElementType::float32, comm::Summing::scaled_by(0.5)))) return;
        EXPECT_EQ(values, std::vector<float>(300, 3.0F));
        std::vector<float> part(150);
        if (!succeeds(communicator.reduce_scatter(values.data(), part.data(), Sizes{150, 150}, ElementType::float32,
                                                  comm::Summing::scaled_by(0.25))))
            return;
        EXPECT_EQ(part, std::vector<float>(150, 1.5F));
        const double own = communicator.rank() == 0 ? 0.5 : 0.25;
        const Error error =
            error_of(communicator.all_reduce(buffer, ElementType::float32, comm::Summing::scaled_by(own)));
        EXPECT_EQ(error.reason, Reason::mismatched) << to_string(error);
        EXPECT_TRUE(says(error, "sum times 0.25")) << to_string(error);
    });
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Folded, testing::ValuesIn(placements()),
                         [](const auto& place) { return name_of(place); });

}  // namespace
}  // namespace atp::test
