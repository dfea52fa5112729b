// SPDX-License-Identifier: Apache-2.0
// Numbers in other formats than 32-bit integers at the job's scale, over sockets and several channels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Buffer;
using comm::Reduction;
using numeric::ElementType;
using tensor::LaneType;
using tensor::Scaling;
using Values = std::vector<float>;

constexpr std::uint32_t form_ranks = 4;

struct Form {
    const char* name;
    Scaling scaling;
    LaneType lane_type;
    double scale;
    double error;  // of a sum, relative to the largest of its fragment

    [[nodiscard]] comm::Options options(std::uint32_t channels) const {
        comm::Options options = small_options();
        options.channels = channels;
        options.scaling = scaling;
        options.lane_type = lane_type;
        options.scale = scale;
        return options;
    }
};

class Forms : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Numbers, Forms,
                         testing::Values(Form{"Dynamic", Scaling::dynamic, LaneType::int32, 1e8, 1e-6},
                                         Form{"DynamicShorts", Scaling::dynamic, LaneType::int16, 1e8, 2e-3},
                                         Form{"DynamicBytes", Scaling::dynamic, LaneType::int8, 1e8, 0.15},
                                         Form{"FixedShorts", Scaling::fixed, LaneType::int16, 2048, 2e-3}),
                         [](const auto& form) { return std::string(form.param.name); });

float value(std::uint32_t round, std::uint32_t rank, std::size_t element) {
    return std::sin(static_cast<float>(element * 7 + rank * 13 + 1)) + 0.125F * static_cast<float>(round % 3);
}

Values tensor_of(std::uint32_t round, std::uint32_t rank, std::size_t elements) {
    Values values(elements);
    for (std::size_t at = 0; at < elements; ++at) values[at] = value(round, rank, at);
    return values;
}

void expect_sums(const Values& sums, std::uint32_t round, double error) {
    for (std::size_t at = 0; at < sums.size(); ++at) {
        double expected = 0;
        for (std::uint32_t rank = 0; rank < form_ranks; ++rank) expected += value(round, rank, at);
        ASSERT_NEAR(sums[at], expected, error * form_ranks) << "round " << round << ", element " << at;
    }
}

// Collects the results of all ranks for comparison.
class Collected {
  public:
    void add(const Values& values) {
        const std::scoped_lock lock(mutex_);
        all_.push_back(values);
    }
    void expect_equal_bits() const {
        ASSERT_EQ(all_.size(), form_ranks);
        for (const Values& values : all_) {
            for (std::size_t at = 0; at < values.size(); ++at) {
                ASSERT_EQ(std::bit_cast<std::uint32_t>(values[at]), std::bit_cast<std::uint32_t>(all_[0][at])) << at;
            }
        }
    }

  private:
    std::mutex mutex_;
    std::vector<Values> all_;
};

TEST_P(Forms, SumsOfEveryRoundHaveTheSameBitsOnAllRanks) {
    const TwoLevels fabric;
    Collected collected;
    Job(form_ranks, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, GetParam().options(2))
        .run([&](comm::Communicator& communicator) {
            Values all;
            for (std::uint32_t round = 0; round < 6; ++round) {
                Values values = tensor_of(round, communicator.rank(), 5001);
                if (!succeeds(sum_in_place(communicator, values))) return;
                expect_sums(values, round, GetParam().error);
                all.insert(all.end(), values.begin(), values.end());
            }
            collected.add(all);
        });
    collected.expect_equal_bits();
}

// With three channels, the last sum of an operation may arrive on another channel than the one that the rank waits for.
TEST_P(Forms, ConcurrentOperationsOfOneFormHaveTheSameBits) {
    const auto node = start(small_switch());
    Collected collected;
    Job(form_ranks, {address_of(*node)}, GetParam().options(3)).run([&](comm::Communicator& communicator) {
        constexpr std::uint32_t operations = 40;
        std::vector<Values> tensors;
        std::vector<comm::Handle> works;
        for (std::uint32_t i = 0; i < operations; ++i) tensors.push_back(tensor_of(i, communicator.rank(), 700));
        for (Values& tensor : tensors) {
            auto work = sum_in_place(communicator, tensor);
            ASSERT_TRUE(work);
            works.push_back(*work);
        }
        Values all;
        for (std::uint32_t i = 0; i < operations; ++i) {
            if (!succeeds(works[i]->wait())) return;
            expect_sums(tensors[i], i, GetParam().error);
            all.insert(all.end(), tensors[i].begin(), tensors[i].end());
        }
        collected.add(all);
    });
    collected.expect_equal_bits();
}

TEST_P(Forms, OtherOperationsAreUnaffected) {
    const auto node = start(small_switch());
    Job(form_ranks, {address_of(*node)}, GetParam().options(1)).run([](comm::Communicator& communicator) {
        work_through(communicator);
        Values averages(500, static_cast<float>(communicator.rank()));
        EXPECT_TRUE(succeeds(sum_in_place(communicator, averages, Reduction::average)));
        EXPECT_EQ(averages, Values(500, 1.5F));
    });
}

TEST(LogOfForms, NumbersThatVanishAreLoggedOnceByEachRank) {
    const auto node = start(small_switch());
    std::mutex mutex;
    int lines = 0;
    Job job(form_ranks, {address_of(*node)});
    job.options().scaling = Scaling::dynamic;
    job.options().lane_type = LaneType::int16;
    job.options().log_receiver = [&](observe::Severity, std::string_view line) {
        const std::scoped_lock lock(mutex);
        if (line.find("round to 0 at its scale") != std::string_view::npos) ++lines;
    };
    job.run([](comm::Communicator& communicator) {
        for (int round = 0; round < 3; ++round) {
            Values values(5000, 1e-9F);
            values[4000] = 1;
            if (!succeeds(sum_in_place(communicator, values))) return;
            EXPECT_EQ(values[4000], 4.0F);
        }
    });
    EXPECT_EQ(lines, static_cast<int>(form_ranks));
}

}  // namespace
}  // namespace atp::test
