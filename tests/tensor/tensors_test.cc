// SPDX-License-Identifier: Apache-2.0
// Tensors of every element type. For all sizes and orders of fragments, in place or not, each element of the result is
// the sum that its type guarantees.
#include "tensor/tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "numeric/exact_sum.h"
#include "numeric/half.h"
#include "numeric/lanes32_sums.h"
#include "numeric/lanes32_switch.h"
#include "support/scenes.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

using Bytes = std::vector<std::byte>;
using protocol::Tensor;

constexpr float scale = 1e6F;

// Buffers that have exactly the size of the tensor, so that a sanitizer detects a write past the end.
template <class T>
struct Memory {
    explicit Memory(std::vector<T> values, bool in_place = false) : in(std::move(values)), out(in.size()) {
        if (in_place) out.clear();
    }
    [[nodiscard]] void* out_data() { return out.empty() ? in.data() : out.data(); }
    [[nodiscard]] const std::vector<T>& result() const { return out.empty() ? in : out; }

    std::vector<T> in;
    std::vector<T> out;
};

// The result that workers, switches and a server compute for one fragment.
Bytes sum_fragment(const std::vector<std::unique_ptr<Tensor>>& tensors, std::uint64_t first, std::size_t lanes) {
    Bytes wire(lanes * ATP_LANE_BYTES);
    std::vector<std::int64_t> sums(lanes, 0);
    std::vector<numeric::ExactLane> exact(lanes, numeric::ExactLane{});
    bool integers = true;
    for (const auto& tensor : tensors) {
        integers = integers && tensor->load_integers(first, wire);
        numeric::sums_add(wire.data(), lanes, sums.data());
    }
    if (tensors.front()->plain()) {
        EXPECT_TRUE(integers);
        numeric::sums_to_integers(sums.data(), lanes, wire.data());
    } else if (integers) {
        numeric::sums_to_floats(sums.data(), lanes, 1.0 / double{scale}, wire.data());
    } else {
        for (const auto& tensor : tensors) {
            tensor->load_floats(first, wire);
            numeric::exact_add(wire.data(), lanes, exact.data());
        }
        numeric::exact_round(exact.data(), lanes, wire.data());
    }
    return wire;
}

// Completes fragments of `payload` lanes in a random order, which `seed` gives. With seed 0, the order is ascending.
void sum_all(const std::vector<std::unique_ptr<Tensor>>& tensors, std::size_t payload, std::uint32_t seed) {
    const std::uint64_t size = tensors.front()->size();
    std::vector<std::uint64_t> firsts;
    for (std::uint64_t first = 0; first < size; first += payload) firsts.push_back(first);
    std::mt19937 random(seed);
    if (seed != 0) std::ranges::shuffle(firsts, random);
    for (const std::uint64_t first : firsts) {
        const auto lanes = static_cast<std::size_t>(std::min<std::uint64_t>(payload, size - first));
        const Bytes sum = sum_fragment(tensors, first, lanes);
        for (const auto& tensor : tensors) tensor->store(first, sum);
    }
}

constexpr std::size_t payloads[] = {1, 2, 3, 4, 5, 7, 61, 62, 256, 300};
constexpr std::size_t sizes[] = {1, 2, 3, 5, 20, 61, 64, 257, 700};

// Sums the tensors make(rank, elements) for every tensor and fragment size, in place and not. `check(addends, sum)`
// checks each element.
template <class T, class Make, class Check>
void for_every_cut(unsigned workers, const Make& make, numeric::ElementType type, double factor, const Check& check) {
    std::uint32_t seed = 0;
    for (const std::size_t elements : sizes) {
        for (const std::size_t payload : payloads) {
            for (const bool in_place : {false, true}) {
                std::vector<std::vector<T>> inputs;
                std::vector<std::unique_ptr<Memory<T>>> memories;
                std::vector<std::unique_ptr<Tensor>> tensors;
                for (unsigned rank = 0; rank < workers; ++rank) {
                    inputs.push_back(make(rank, elements));
                    memories.push_back(std::make_unique<Memory<T>>(inputs.back(), in_place));
                    Memory<T>& memory = *memories.back();
                    tensors.push_back(
                        make_sum_tensor(type, memory.in.data(), memory.out_data(), elements, scale, factor));
                }
                sum_all(tensors, payload, seed++ % 5);
                for (const auto& memory : memories) {
                    ASSERT_EQ(memory->result().size(), elements);
                    for (std::size_t at = 0; at < elements; ++at) {
                        std::vector<T> addends;
                        for (const auto& input : inputs) addends.push_back(input[at]);
                        ASSERT_TRUE(check(addends, memory->result()[at]))
                            << to_string(type) << ": element " << at << " of " << elements << ", payload " << payload;
                    }
                    const auto rank = static_cast<std::size_t>(&memory - memories.data());
                    ASSERT_TRUE(in_place || memory->in == inputs[rank])
                        << "the input changed, although the sum is not in place";
                }
            }
        }
    }
}

// --- names

TEST(ElementTypes, NamesParseToTheirTypesAndOthersAreRefused) {
    for (const numeric::ElementType type : numeric::element_types)
        EXPECT_EQ(numeric::parse_element_type(to_string(type)), type);
    for (const char* name : {"", "float", "int", "float32 ", "Float32", "int8", "float8"}) {
        EXPECT_FALSE(numeric::parse_element_type(name).has_value()) << name;
    }
}

TEST(ElementTypes, SizesMatchTheirMemory) {
    EXPECT_EQ(numeric::bytes_of(numeric::ElementType::float32), sizeof(float));
    EXPECT_EQ(numeric::bytes_of(numeric::ElementType::float64), sizeof(double));
    EXPECT_EQ(numeric::bytes_of(numeric::ElementType::float16), 2U);
    EXPECT_EQ(numeric::bytes_of(numeric::ElementType::bfloat16), 2U);
    EXPECT_EQ(numeric::bytes_of(numeric::ElementType::int32), 4U);
    EXPECT_EQ(numeric::bytes_of(numeric::ElementType::int64), 8U);
    for (const numeric::ElementType type : numeric::element_types) {
        EXPECT_EQ(numeric::is_integer(type), to_string(type).substr(0, 3) == "int");
    }
}

// --- integers

template <class T>
std::vector<T> any_integers(unsigned rank, std::size_t count) {
    std::mt19937_64 random(rank * 1000 + count);
    constexpr T extremes[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), -1, 0, 1};
    std::vector<T> values(count);
    for (T& value : values) {
        const std::uint64_t drawn = random();
        value = drawn % 4 == 0 ? extremes[(drawn >> 8U) % std::size(extremes)] : static_cast<T>(random());
    }
    return values;
}

template <class T>
bool is_wrapped_sum(const std::vector<T>& addends, T sum) {
    std::uint64_t exact = 0;
    for (const T addend : addends) exact += static_cast<std::uint64_t>(std::int64_t{addend});
    return static_cast<T>(exact) == sum;
}

TEST(Tensors, Int32IsSummedModulo2To32ForEveryPayload) {
    for_every_cut<std::int32_t>(3, any_integers<std::int32_t>, numeric::ElementType::int32, 1,
                                is_wrapped_sum<std::int32_t>);
}

TEST(Tensors, Int64IsSummedModulo2To64ForEveryPayload) {
    for_every_cut<std::int64_t>(3, any_integers<std::int64_t>, numeric::ElementType::int64, 1,
                                is_wrapped_sum<std::int64_t>);
}

std::vector<std::int32_t> limbs_of(std::int64_t value) {
    const auto tensor = make_sum_tensor(numeric::ElementType::int64, &value, &value, 1, scale, 1);
    Bytes wire(tensor->size() * ATP_LANE_BYTES);
    EXPECT_TRUE(tensor->load_integers(0, wire));
    std::vector<std::int32_t> limbs(tensor->size());
    numeric::lanes_store(wire.data(), limbs.size(), limbs.data());
    return limbs;
}

TEST(Tensors, SumOf1024WorkersFitsTheLanesOfAnyInt64) {
    constexpr std::int32_t half = 1 << 21;
    std::mt19937_64 random(3);
    std::vector<std::int64_t> values = any_integers<std::int64_t>(1, 100'000);
    for (unsigned bit = 0; bit < 64; ++bit) {
        const std::uint64_t power = std::uint64_t{1} << bit;
        for (const std::uint64_t near : {power - 1, power, power + 1, 0 - power, ~power}) {
            values.push_back(static_cast<std::int64_t>(near));
        }
    }
    for (const std::int64_t value : values) {
        const std::vector<std::int32_t> limbs = limbs_of(value);
        std::uint64_t back = 0;
        for (std::size_t limb = 0; limb < limbs.size(); ++limb) {
            ASSERT_GE(limbs[limb], -half) << value;
            ASSERT_LT(limbs[limb], half) << value;
            back += static_cast<std::uint64_t>(std::int64_t{limbs[limb]}) << (bits_of_limb * limb);
        }
        ASSERT_EQ(back, static_cast<std::uint64_t>(value));
    }
}

// Every worker of the largest job sends the number with the lowest lanes. The sums of two lanes are then exactly the
// lowest int32.
TEST(Tensors, LowestLanesOf1024WorkersFitInt32) {
    constexpr std::int64_t workers = 1024;
    const auto lowest = static_cast<std::int64_t>(0 - (std::uint64_t{1} << 21U) - (std::uint64_t{1} << 43U) -
                                                  (std::uint64_t{1} << 63U));
    const std::vector<std::int32_t> limbs = limbs_of(lowest);
    EXPECT_EQ(limbs, (std::vector<std::int32_t>{-(1 << 21), -(1 << 21), -(1 << 19)}));
    EXPECT_EQ(limbs[0] * workers, std::numeric_limits<std::int32_t>::min());
    std::vector<std::int64_t> values(workers, lowest);
    std::vector<std::unique_ptr<Tensor>> tensors;
    for (std::int64_t& value : values) {
        tensors.push_back(make_sum_tensor(numeric::ElementType::int64, &value, &value, 1, scale, 1));
    }
    sum_all(tensors, 2, 1);
    EXPECT_EQ(static_cast<std::uint64_t>(values[5]), static_cast<std::uint64_t>(lowest) * workers);
}

// --- scaled numbers

// The result of the server for these float32 values, as float64.
double reference_sum(const std::vector<float>& addends) {
    std::int64_t sum = 0;
    for (const float addend : addends) sum += std::llrint(addend * scale);
    return static_cast<double>(static_cast<float>(static_cast<double>(sum) * (1.0 / double{scale})));
}

double some_number(std::mt19937& random) { return (static_cast<double>(random()) - 2147483648.0) / 3e6; }

template <class T>
std::vector<T> some_numbers(unsigned rank, std::size_t count) {
    std::mt19937 random(static_cast<std::uint32_t>(rank * 1000 + count));
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(some_number(random));
    return values;
}

TEST(Tensors, Float32IsSummedAndAveraged) {
    for (const double factor : {1.0, 1.0 / 3.0}) {
        for_every_cut<float>(3, some_numbers<float>, numeric::ElementType::float32, factor,
                             [&](const std::vector<float>& addends, float result) {
                                 return result == static_cast<float>(reference_sum(addends) * factor);
                             });
    }
}

TEST(Tensors, Float64IsSummedAsFloat32AndAveragedInFloat64) {
    for (const double factor : {1.0, 1.0 / 3.0}) {
        for_every_cut<double>(3, some_numbers<double>, numeric::ElementType::float64, factor,
                              [&](const std::vector<double>& addends, double result) {
                                  const std::vector<float> narrow(addends.begin(), addends.end());
                                  return result == reference_sum(narrow) * factor;
                              });
    }
}

struct Sixteen {
    numeric::ElementType type;
    void (*widen)(const std::uint16_t*, std::size_t, float*);
    void (*narrow)(const float*, std::size_t, std::uint16_t*);

    [[nodiscard]] float widened(std::uint16_t bits) const {
        float value = 0;
        widen(&bits, 1, &value);
        return value;
    }
    [[nodiscard]] std::uint16_t narrowed(double value) const {
        const auto wide = static_cast<float>(value);
        std::uint16_t bits = 0;
        narrow(&wide, 1, &bits);
        return bits;
    }
};

const Sixteen sixteens[] = {{numeric::ElementType::float16, numeric::halves_to_floats, numeric::floats_to_halves},
                            {numeric::ElementType::bfloat16, numeric::bfloats_to_floats, numeric::floats_to_bfloats}};

TEST(Tensors, Float16AndBfloat16AreSummedAsFloat32AndRoundedOnce) {
    for (const Sixteen& sixteen : sixteens) {
        for (const double factor : {1.0, 1.0 / 3.0}) {
            const auto make = [&](unsigned rank, std::size_t count) {
                std::vector<std::uint16_t> values;
                for (const double value : some_numbers<double>(rank, count)) values.push_back(sixteen.narrowed(value));
                return values;
            };
            for_every_cut<std::uint16_t>(3, make, sixteen.type, factor,
                                         [&](const std::vector<std::uint16_t>& addends, std::uint16_t result) {
                                             std::vector<float> wide;
                                             for (const auto bits : addends) wide.push_back(sixteen.widened(bits));
                                             return result == sixteen.narrowed(reference_sum(wide) * factor);
                                         });
        }
    }
}

// One of two workers contributes every bit pattern, finite or not. The other contributes 0, so the sum is the pattern.
TEST(Tensors, Every16BitPatternKeepsItsValueInAFloatFragment) {
    for (const Sixteen& sixteen : sixteens) {
        std::vector<std::uint16_t> all(1U << 16U);
        std::iota(all.begin(), all.end(), std::uint16_t{0});
        // An infinity in every second element makes the workers send floats, which are exact.
        std::vector<std::uint16_t> in(2 * all.size(), sixteen.narrowed(std::numeric_limits<double>::infinity()));
        for (std::size_t at = 0; at < all.size(); ++at) in[2 * at] = all[at];
        std::vector<std::uint16_t> nothing(in.size(), 0);
        std::vector<std::unique_ptr<Tensor>> tensors;
        tensors.push_back(make_sum_tensor(sixteen.type, in.data(), in.data(), in.size(), scale, 1));
        tensors.push_back(make_sum_tensor(sixteen.type, nothing.data(), nothing.data(), in.size(), scale, 1));
        sum_all(tensors, 2, 0);
        for (std::size_t at = 0; at < all.size(); ++at) {
            const float before = sixteen.widened(all[at]);
            const float after = sixteen.widened(nothing[2 * at]);
            if (std::isnan(before)) {
                ASSERT_TRUE(std::isnan(after)) << all[at];
            } else {
                ASSERT_EQ(after, before) << all[at];
            }
            ASSERT_TRUE(std::isinf(sixteen.widened(nothing[2 * at + 1])));
        }
    }
}

template <class T>
std::vector<double> sum_of_specials(numeric::ElementType type, const std::vector<std::pair<double, double>>& pairs,
                                    double factor, T (*from)(double), double (*to)(T)) {
    std::vector<T> a;
    std::vector<T> b;
    for (const auto& [first, second] : pairs) {
        a.push_back(from(first));
        b.push_back(from(second));
    }
    std::vector<std::unique_ptr<Tensor>> tensors;
    tensors.push_back(make_sum_tensor(type, a.data(), a.data(), a.size(), scale, factor));
    tensors.push_back(make_sum_tensor(type, b.data(), b.data(), b.size(), scale, factor));
    sum_all(tensors, pairs.size(), 0);
    std::vector<double> sums;
    for (const T sum : b) sums.push_back(to(sum));
    return sums;
}

void expect_specials(const std::vector<double>& sums) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(std::isnan(sums[0]));
    EXPECT_EQ(sums[1], infinity);
    EXPECT_EQ(sums[2], -infinity);
    EXPECT_TRUE(std::isnan(sums[3]));
    EXPECT_EQ(sums[4], 0.75);
}

TEST(Tensors, InfinitiesAndNanFollowIeeeInEveryType) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<std::pair<double, double>> pairs{
        {nan, 1}, {infinity, 1}, {1, -infinity}, {infinity, -infinity}, {1, 0.5}};
    constexpr double factor = 0.5;
    expect_specials(sum_of_specials<float>(
        numeric::ElementType::float32, pairs, factor, [](double value) { return static_cast<float>(value); },
        [](float value) { return double{value}; }));
    expect_specials(sum_of_specials<double>(
        numeric::ElementType::float64, pairs, factor, [](double value) { return value; },
        [](double value) { return value; }));
    expect_specials(sum_of_specials<std::uint16_t>(
        numeric::ElementType::float16, pairs, factor, [](double value) { return sixteens[0].narrowed(value); },
        [](std::uint16_t value) { return double{sixteens[0].widened(value)}; }));
    expect_specials(sum_of_specials<std::uint16_t>(
        numeric::ElementType::bfloat16, pairs, factor, [](double value) { return sixteens[1].narrowed(value); },
        [](std::uint16_t value) { return double{sixteens[1].widened(value)}; }));
}

TEST(Tensors, OneElementOutsideTheScaleMakesItsFragmentFloat) {
    for (const std::size_t at : {0U, 255U, 256U, 511U, 512U, 699U}) {
        std::vector<double> values(700, 1.0);
        values[at] = 1e300;  // float32 cannot represent it: infinity
        const auto tensor =
            make_sum_tensor(numeric::ElementType::float64, values.data(), values.data(), values.size(), scale, 1);
        Bytes wire(values.size() * ATP_LANE_BYTES);
        EXPECT_FALSE(tensor->load_integers(0, wire)) << at;
        EXPECT_TRUE(tensor->load_integers(0, std::span(wire).first(at * ATP_LANE_BYTES)));
        tensor->load_floats(0, wire);
        EXPECT_EQ(wire::load_u32(wire.data() + at * ATP_LANE_BYTES), 0x7F800000U);
    }
}

// --- broadcast

constexpr std::byte guard{0x55};

// Memory of `bytes` bytes, followed by one lane of guard bytes.
Bytes guarded(std::size_t bytes) { return Bytes(bytes + ATP_LANE_BYTES, guard); }

void expect_guarded(const Bytes& memory, const Bytes& expected) {
    Bytes all = expected;
    all.resize(expected.size() + ATP_LANE_BYTES, guard);
    EXPECT_EQ(memory, all);
}

TEST(Tensors, BroadcastDeliversAnyNumberOfBytes) {
    std::mt19937 random(5);
    for (const std::size_t bytes : {1U, 2U, 3U, 4U, 5U, 8U, 63U, 64U, 65U, 1000U}) {
        for (const std::size_t payload : {1U, 3U, 61U}) {
            for (const bool in_place : {false, true}) {
                Bytes data(bytes);
                for (std::byte& byte : data) byte = static_cast<std::byte>(random() % 3 == 0 ? 0xFF : random());
                const Bytes original = data;
                Bytes copy(in_place ? 0 : bytes);
                Bytes second = guarded(bytes);
                Bytes third = guarded(bytes);
                std::vector<std::unique_ptr<Tensor>> tensors;
                tensors.push_back(make_broadcast_tensor(data.data(), in_place ? data.data() : copy.data(), bytes));
                tensors.push_back(make_broadcast_tensor(nullptr, second.data(), bytes));
                tensors.push_back(make_broadcast_tensor(nullptr, third.data(), bytes));
                EXPECT_EQ(tensors[0]->size(), (bytes + 3) / 4);
                sum_all(tensors, payload, static_cast<std::uint32_t>(bytes % 4));
                EXPECT_EQ(data, original);
                EXPECT_EQ(in_place ? data : copy, original);
                expect_guarded(second, original);
                expect_guarded(third, original);
            }
        }
    }
}

TEST(Tensors, RootMayOmitItsOwnOutput) {
    const std::vector<std::uint32_t> data{0x80000000U, 0xFFFFFFFFU};
    std::vector<std::uint32_t> other(2, 7);
    std::vector<std::unique_ptr<Tensor>> tensors;
    tensors.push_back(make_broadcast_tensor(data.data(), nullptr, 8));
    tensors.push_back(make_broadcast_tensor(nullptr, other.data(), 8));
    sum_all(tensors, 2, 0);
    EXPECT_EQ(other, data);
}

// --- through the state machines

// Four element lanes and the audit lane, so that most fragments split an int64. The window is 8.
testing::NetworkConfig network_config(std::uint32_t seed) {
    testing::NetworkConfig config = seed % 2 == 0 ? testing::star(3) : testing::racks(3, 1);
    config.channel.lanes = 5;
    config.scale = double{scale};
    return config;
}

TEST(Tensors, SeveralTypesInPlaceSumExactlyUnderLossAndReordering) {
    constexpr std::size_t elements = 33;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        testing::Network network(network_config(seed));
        std::vector<std::vector<std::int64_t>> wide;
        std::vector<std::vector<float>> floats;
        std::vector<Bytes> bytes;
        std::vector<std::unique_ptr<Tensor>> tensors;
        for (unsigned rank = 0; rank < 3; ++rank) {
            wide.push_back(any_integers<std::int64_t>(seed + rank, elements));
            floats.push_back(some_numbers<float>(seed + rank, elements));
            bytes.emplace_back(elements, static_cast<std::byte>(seed + rank));
        }
        const auto wide_before = wide;
        const auto floats_before = floats;
        const Bytes root = bytes[1];
        for (unsigned rank = 0; rank < 3; ++rank) {
            const auto submit = [&](std::unique_ptr<Tensor> tensor) {
                tensors.push_back(std::move(tensor));
                network.submit(rank, *tensors.back());
            };
            std::int64_t* integers = wide[rank].data();
            float* values = floats[rank].data();
            std::byte* data = bytes[rank].data();
            submit(make_sum_tensor(numeric::ElementType::int64, integers, integers, elements, scale, 1));
            submit(make_sum_tensor(numeric::ElementType::float32, values, values, elements, scale, 1.0 / 3.0));
            submit(make_broadcast_tensor(rank == 1 ? data : nullptr, data, elements));
        }
        ASSERT_TRUE(network.finish_among({.loss = 0.1, .duplication = 0.1, .reordering = 0.5}, seed)) << seed;
        ASSERT_EQ(network.server().counters().audit_failures, 0U);
        ASSERT_EQ(network.server().counters().overflowed, 0U);
        for (unsigned rank = 0; rank < 3; ++rank) {
            ASSERT_EQ(bytes[rank], root) << seed;
            for (std::size_t at = 0; at < elements; ++at) {
                const std::vector<std::int64_t> addends{wide_before[0][at], wide_before[1][at], wide_before[2][at]};
                ASSERT_TRUE(is_wrapped_sum(addends, wide[rank][at])) << seed;
                const std::vector<float> numbers{floats_before[0][at], floats_before[1][at], floats_before[2][at]};
                ASSERT_EQ(floats[rank][at], static_cast<float>(reference_sum(numbers) / 3.0)) << seed;
            }
        }
    }
}

}  // namespace
}  // namespace atp::tensor
