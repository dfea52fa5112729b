// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter, all-gather and reduce: over switches, over servers on hosts, in shared memory, and with several ranks
// on each of several hosts.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "fabric.h"
#include "numeric/lanes32_switch.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Communicator;
using comm::Reduction;
using numeric::ElementType;
using Sizes = std::vector<std::size_t>;

struct Placement {
    std::string name;
    std::function<void(std::uint32_t world, const std::function<void(Communicator&)>& body)> run;
};

// Of the jobs that the next lines run.
tensor::Scaling scaling_of_jobs = tensor::Scaling::fixed;

void run_on_switch(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    options.channels = 2;
    Job(world, {address_of(*node)}, options).run(body);
}

void run_on_two_levels(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    const TwoLevels levels;
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    Job(world, {address_of(*levels.leaves[0]), address_of(*levels.leaves[1])}, options).run(body);
}

void run_on_one_host(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    options.host_level = true;
    Job(world, {""}, options).run(body);
}

using HostOfRank = std::function<std::uint32_t(std::uint32_t rank)>;

HostOfRank packed(std::uint32_t each) {
    return [each](std::uint32_t rank) { return rank / each; };
}

void run_on_hosts(std::uint32_t world, const HostOfRank& host_of, const std::string& at,
                  const std::function<void(Communicator&)>& body) {
    comm::Options options = small_options();
    options.scaling = scaling_of_jobs;
    options.host_level = true;
    Job job(world, {at}, options);
    run_with(
        job,
        [&](std::uint32_t rank) {
            comm::Options own = job.options_of(rank);
            own.host_name = "host" + std::to_string(host_of(rank));
            own.switch_address = at;
            if (at.empty()) own.listen = "127.0.0." + std::to_string(2 + host_of(rank)) + ":0";
            return own;
        },
        body);
}

void run_without_switch(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    run_on_hosts(world, packed(1), "", body);
}

void run_on_full_hosts(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    const auto node = start(small_switch());
    run_on_hosts(world, packed(2), address_of(*node), body);
}

// Hosts of several ranks, which do not follow each other, and one of a single rank.
void run_on_mixed_hosts(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    const auto node = start(small_switch());
    run_on_hosts(
        world, [](std::uint32_t rank) { return rank == 3 ? 2U : rank % 2; }, address_of(*node), body);
}

void run_on_full_hosts_without_switch(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    run_on_hosts(world, packed(2), "", body);
}

class Sharded : public testing::TestWithParam<Placement> {};

// A value that no integer has, so that some fragments travel as floats.
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
    GetParam().run(4, [&](Communicator& communicator) {
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
                if (!succeeds(
                        communicator.reduce_scatter(input.data(), part.data(), sizes, ElementType::float32, reduction)))
                    return;
                const std::size_t first =
                    std::reduce(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(communicator.rank()));
                EXPECT_TRUE(own == 0 || std::memcmp(part.data(), whole.data() + first, own * sizeof(float)) == 0)
                    << own;
            }
        }
    });
}

// All jobs with dynamic scaling, while it exists.
class DynamicJobs {
  public:
    DynamicJobs() { scaling_of_jobs = tensor::Scaling::dynamic; }
    ~DynamicJobs() { scaling_of_jobs = tensor::Scaling::fixed; }
    DynamicJobs(const DynamicJobs&) = delete;
    DynamicJobs& operator=(const DynamicJobs&) = delete;
};

float value_of(std::uint32_t rank, std::size_t at, float magnitude) {
    return magnitude * std::sin(static_cast<float>(at * 3 + rank));
}

// Sums of reduce-scatters of several magnitudes on four ranks: bits of the elements of rank 0, then of rank 1, ...
std::vector<std::uint32_t> sums_at(const std::vector<float>& magnitudes, const Placement& placement) {
    const Sizes sizes = {700, 5000, 0, 301};
    std::vector<std::vector<std::uint32_t>> of_rank(sizes.size());
    placement.run(4, [&](Communicator& communicator) {
        const std::uint32_t rank = communicator.rank();
        const std::size_t begin = std::reduce(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank));
        for (const float magnitude : magnitudes) {
            std::vector<float> input(6001);
            for (std::size_t at = 0; at < input.size(); ++at) input[at] = value_of(rank, at, magnitude);
            std::vector<float> part(sizes[rank]);
            if (!succeeds(communicator.reduce_scatter(input.data(), part.data(), sizes, ElementType::float32,
                                                      Reduction::sum)))
                return;
            for (std::size_t at = 0; at < part.size(); ++at) {
                double sum = 0;
                for (std::uint32_t other = 0; other < 4; ++other) {
                    sum += static_cast<double>(value_of(other, begin + at, magnitude));
                }
                EXPECT_NEAR(part[at], sum, 1e-6 * static_cast<double>(magnitude));
                of_rank[rank].push_back(std::bit_cast<std::uint32_t>(part[at]));
            }
        }
    });
    std::vector<std::uint32_t> all;
    for (const auto& bits : of_rank) all.insert(all.end(), bits.begin(), bits.end());
    return all;
}

TEST_P(Sharded, DynamicScaleSuitsEveryMagnitudeAndEqualsThatOfEveryPlacement) {
    const DynamicJobs dynamic;
    const std::vector<float> magnitudes = {1.0F, 1e4F, 1e-9F, 1e-25F, 6e8F, 0.0F, 2.0F, 3.0F};
    static const std::vector<std::uint32_t> expected = sums_at(magnitudes, {"switch", run_on_switch});
    EXPECT_TRUE(sums_at(magnitudes, GetParam()) == expected);
}

// A scale has room for numbers of up to 64 times the largest one of the step before.
TEST_P(Sharded, DynamicScaleFollowsTheStepBeforeWithoutFloats) {
    const DynamicJobs dynamic;
    for (const float first : {1e4F, 1e-12F}) {
        const Placement watched{GetParam().name, [&](std::uint32_t world, const auto& body) {
                                    GetParam().run(world, [&](Communicator& communicator) {
                                        body(communicator);
                                        EXPECT_TRUE(succeeds(communicator.barrier()));
                                        for (const auto& channel : communicator.counters()) {
                                            EXPECT_EQ(channel.worker.float_fragments, 0U);
                                        }
                                    });
                                }};
        EXPECT_FALSE(sums_at({first, first * 60, first * 50}, watched).empty());
    }
}

TEST_P(Sharded, DynamicScaleOfAReduceSuitsItsNumbers) {
    const DynamicJobs dynamic;
    GetParam().run(3, [](Communicator& communicator) {
        for (const float number : {1e5F, 3e-10F}) {
            const std::vector<float> input(2000, number);
            std::vector<float> sums(2000);
            void* const out = communicator.rank() == 1 ? sums.data() : nullptr;
            if (!succeeds(
                    communicator.reduce({input.data(), out, input.size()}, ElementType::float32, Reduction::sum, 1)))
                return;
            if (communicator.rank() == 1) {
                EXPECT_NEAR(sums.back() / (3 * number), 1, 1e-6);
            }
        }
    });
}

TEST_P(Sharded, ReduceScatterSumsEveryType) {
    GetParam().run(3, [](Communicator& communicator) {
        for (const ElementType type : numeric::element_types) {
            const Sizes sizes = {500, 70, 1000};
            Bytes input = tensor_of(type, communicator.rank(), 1570, 1);
            const Bytes sum = sum_of_ranks(type, Reduction::sum, 3, 1570, 1);
            const std::size_t width = numeric::bytes_of(type);
            const std::size_t first = communicator.rank() == 0 ? 0 : communicator.rank() == 1 ? 500 : 570;
            const auto begin = static_cast<std::ptrdiff_t>(first * width);
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
    GetParam().run(4, [&](Communicator& communicator) {
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

TEST_P(Sharded, ReduceGoesToTheRootAlone) {
    GetParam().run(3, [](Communicator& communicator) {
        for (std::uint32_t root = 0; root < 3; ++root) {
            std::vector<float> values(3000, static_cast<float>(communicator.rank() + 1));
            const bool gets = communicator.rank() == root;
            if (!succeeds(communicator.reduce({values.data(), gets ? values.data() : nullptr, values.size()},
                                              ElementType::float32, Reduction::sum, root)))
                return;
            EXPECT_EQ(values, std::vector<float>(3000, gets ? 6.0F : static_cast<float>(communicator.rank() + 1)));
        }
    });
}

TEST_P(Sharded, OperationsOverlap) {
    GetParam().run(4, [](Communicator& communicator) {
        constexpr std::size_t each = 5000;
        const Sizes counts(4, each);
        const Sizes bytes(4, each * sizeof(float));
        for (int round = 0; round < 5; ++round) {
            const std::vector<float> input(4 * each, static_cast<float>(communicator.rank() + 1));
            std::vector<float> part(each);
            std::vector<float> whole(4 * each);
            std::vector<float> summed = input;
            const auto scattered =
                communicator.reduce_scatter(input.data(), part.data(), counts, ElementType::float32, Reduction::sum);
            const auto gathered = communicator.all_gather(input.data(), whole.data(), bytes);
            const auto reduced = communicator.all_reduce({summed.data(), summed.data(), summed.size()},
                                                         ElementType::float32, Reduction::sum);
            if (!succeeds(scattered) || !succeeds(gathered) || !succeeds(reduced)) return;
            EXPECT_EQ(part, std::vector<float>(each, 10.0F));
            EXPECT_EQ(summed, std::vector<float>(4 * each, 10.0F));
            for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(whole[rank * each], static_cast<float>(rank + 1));
        }
    });
}

// The exponents and votes of sums pass between all-gathers. In each round another rank is late with each call.
TEST_P(Sharded, H61_VotesAndAllGathersKeepOneOrderWhenRanksAreLate) {
    const DynamicJobs dynamic;
    GetParam().run(4, [](Communicator& communicator) {
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
    GetParam().run(2, [](Communicator& communicator) {
        const Sizes counts = communicator.rank() == 0 ? Sizes{1000, 1000} : Sizes{1000, 1400};
        const std::vector<float> input(2400, 1.0F);
        std::vector<float> part(1400);
        const Error error = error_of(
            communicator.reduce_scatter(input.data(), part.data(), counts, ElementType::float32, Reduction::sum));
        EXPECT_NE(error.reason, Reason::timed_out);
    });
}

INSTANTIATE_TEST_SUITE_P(Operations, Sharded,
                         testing::Values(Placement{"switch", run_on_switch}, Placement{"levels", run_on_two_levels},
                                         Placement{"host", run_on_one_host}, Placement{"hosts", run_without_switch},
                                         Placement{"full_hosts", run_on_full_hosts},
                                         Placement{"mixed_hosts", run_on_mixed_hosts},
                                         Placement{"full_hosts_no_switch", run_on_full_hosts_without_switch}),
                         [](const auto& place) { return place.param.name; });

TEST(Sharding, LostPacketsChangeNothing) {
    const auto body = [](Communicator& communicator) {
        constexpr std::size_t each = 20'000;
        const std::size_t world = communicator.world();
        const std::vector<float> input(world * each, static_cast<float>(communicator.rank() + 1));
        std::vector<float> part(each);
        std::vector<float> whole(world * each);
        if (!succeeds(communicator.reduce_scatter(input.data(), part.data(), Sizes(world, each), ElementType::float32,
                                                  Reduction::sum)))
            return;
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
        run_on_hosts(4, packed(2), address_of(*node), body);
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
    run_on_full_hosts(6, [](Communicator& communicator) {
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
            if (!succeeds(communicator.reduce_scatter(input.data(), part.data(), Sizes(6, each), ElementType::float32,
                                                      Reduction::sum)))
                return;
            EXPECT_EQ(part, std::vector<float>(each, 21.0F));
            if (!speaks) continue;
            EXPECT_TRUE(eventually([&] { return udp().received_bytes - before > bytes_of(2); }));
            fewest = std::min(fewest, udp().received_bytes - before);
        }
        EXPECT_TRUE(!speaks || fewest < bytes_of(5)) << fewest;
    });
}

TEST(Sharding, WrongArgumentsAreRefused) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](Communicator& communicator) {
        std::vector<float> values(4);
        const auto scatter = [&](const Sizes& counts, ElementType type, Reduction reduction) {
            return error_of(communicator.reduce_scatter(values.data(), values.data(), counts, type, reduction)).reason;
        };
        EXPECT_EQ(scatter({1}, ElementType::float32, Reduction::sum), Reason::malformed);
        EXPECT_EQ(scatter({1, 1}, ElementType::int32, Reduction::average), Reason::unsupported);
        EXPECT_EQ(error_of(communicator.all_gather(nullptr, values.data(), Sizes{1, 1})).reason, Reason::malformed);
        EXPECT_EQ(error_of(communicator.all_gather(values.data(), values.data(), Sizes{1})).reason, Reason::malformed);
        EXPECT_EQ(
            error_of(communicator.reduce({values.data(), values.data(), 4}, ElementType::float32, Reduction::sum, 2))
                .reason,
            Reason::malformed);
        EXPECT_TRUE(succeeds(communicator.all_gather(nullptr, nullptr, Sizes{0, 0})));
    });
}

}  // namespace
}  // namespace atp::test
