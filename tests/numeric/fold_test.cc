// SPDX-License-Identifier: Apache-2.0
#include "numeric/fold.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "numeric/half.h"

namespace atp::numeric {
namespace {

constexpr FoldOperation operations[] = {FoldOperation::minimum, FoldOperation::maximum, FoldOperation::product,
                                        FoldOperation::bit_and, FoldOperation::bit_or,  FoldOperation::bit_xor,
                                        FoldOperation::sum};

template <class Element>
std::vector<Element> folded(FoldType type, FoldOperation operation, std::vector<Element> into,
                            const std::vector<Element>& from) {
    fold(type, operation, std::as_writable_bytes(std::span(into)), std::as_bytes(std::span(from)));
    return into;
}

template <class Element>
Element folded(FoldType type, FoldOperation operation, Element into, Element from) {
    return folded(type, operation, std::vector{into}, std::vector{from}).front();
}

// In 64 bits, where no product of the tested integers overflows but those of int64, which wrap.
std::int64_t expected_of(FoldOperation operation, std::int64_t a, std::int64_t b) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    switch (operation) {
        case FoldOperation::minimum: return std::min(a, b);
        case FoldOperation::maximum: return std::max(a, b);
        case FoldOperation::product: return static_cast<std::int64_t>(x * y);
        case FoldOperation::bit_and: return a & b;
        case FoldOperation::bit_or: return a | b;
        case FoldOperation::bit_xor: return a ^ b;
        case FoldOperation::sum: return static_cast<std::int64_t>(x + y);
    }
    return 0;
}

template <class Integer>
void expect_integers(FoldType type) {
    using Limits = std::numeric_limits<Integer>;
    const std::vector<Integer> values{0,
                                      1,
                                      2,
                                      3,
                                      5,
                                      100,
                                      Limits::min(),
                                      Limits::max(),
                                      static_cast<Integer>(-1),
                                      static_cast<Integer>(Limits::max() - 1),
                                      static_cast<Integer>(Limits::max() / 3)};
    for (const FoldOperation operation : operations) {
        ASSERT_TRUE(can_fold(type, operation));
        std::vector<Integer> into;
        std::vector<Integer> from;
        std::vector<Integer> expected;
        for (const Integer a : values) {
            for (const Integer b : values) {
                into.push_back(a);
                from.push_back(b);
                expected.push_back(static_cast<Integer>(expected_of(operation, a, b)));
            }
        }
        EXPECT_EQ(folded(type, operation, into, from), expected) << to_string(type) << ' ' << to_string(operation);
    }
}

TEST(Fold, IntegersWrapAround) {
    expect_integers<std::int8_t>(FoldType::int8);
    expect_integers<std::uint8_t>(FoldType::uint8);
    expect_integers<std::int16_t>(FoldType::int16);
    expect_integers<std::int32_t>(FoldType::int32);
    expect_integers<std::int64_t>(FoldType::int64);
}

// A program may store any byte as a boolean.
TEST(Fold, BooleansAreLogical) {
    using Bytes = std::vector<std::uint8_t>;
    const Bytes into{0, 0, 1, 1, 2, 255};
    const Bytes from{0, 1, 0, 1, 1, 2};
    const Bytes either{0, 1, 1, 1, 1, 1};
    const Bytes both{0, 0, 0, 1, 1, 1};
    const auto of = [&](FoldOperation operation) { return folded(FoldType::boolean, operation, into, from); };
    EXPECT_EQ(of(FoldOperation::sum), either);
    EXPECT_EQ(of(FoldOperation::maximum), either);
    EXPECT_EQ(of(FoldOperation::bit_or), either);
    EXPECT_EQ(of(FoldOperation::product), both);
    EXPECT_EQ(of(FoldOperation::minimum), both);
    EXPECT_EQ(of(FoldOperation::bit_and), both);
    EXPECT_EQ(of(FoldOperation::bit_xor), (Bytes{0, 1, 1, 0, 0, 0}));
}

template <class Float>
void expect_floats(FoldType type) {
    constexpr Float infinity = std::numeric_limits<Float>::infinity();
    constexpr Float nan = std::numeric_limits<Float>::quiet_NaN();
    constexpr Float largest = std::numeric_limits<Float>::max();
    const auto of = [&](FoldOperation operation, Float a, Float b) { return folded(type, operation, a, b); };
    EXPECT_EQ(of(FoldOperation::minimum, 3, -2.5), -2.5);
    EXPECT_EQ(of(FoldOperation::maximum, 3, -2.5), 3);
    EXPECT_EQ(of(FoldOperation::product, 3, -2.5), -7.5);
    EXPECT_EQ(of(FoldOperation::sum, 3, -2.5), 0.5);
    EXPECT_EQ(of(FoldOperation::maximum, largest, infinity), infinity);
    EXPECT_EQ(of(FoldOperation::product, largest, 2), infinity);
    EXPECT_EQ(of(FoldOperation::sum, largest, largest), infinity);
    for (const FoldOperation operation :
         {FoldOperation::minimum, FoldOperation::maximum, FoldOperation::product, FoldOperation::sum}) {
        EXPECT_TRUE(std::isnan(of(operation, nan, -infinity))) << to_string(operation);
        EXPECT_TRUE(std::isnan(of(operation, 1, nan))) << to_string(operation);
    }
    for (const FoldOperation operation : {FoldOperation::minimum, FoldOperation::maximum}) {
        EXPECT_TRUE(std::signbit(of(operation, -Float{0}, 0))) << "the earlier zero stays";
        EXPECT_FALSE(std::signbit(of(operation, 0, -Float{0}))) << "the earlier zero stays";
    }
    EXPECT_FALSE(can_fold(type, FoldOperation::bit_and));
    EXPECT_FALSE(can_fold(type, FoldOperation::bit_or));
    EXPECT_FALSE(can_fold(type, FoldOperation::bit_xor));
}

TEST(Fold, FloatsPropagateNaNAndKeepTheEarlierZero) {
    expect_floats<float>(FoldType::float32);
    expect_floats<double>(FoldType::float64);
}

TEST(Fold, Float64KeepsAllItsDigits) {
    EXPECT_EQ(folded(FoldType::float64, FoldOperation::sum, 1.0, 0x1p-52), 1.0 + 0x1p-52);
    EXPECT_EQ(folded(FoldType::float64, FoldOperation::maximum, 1.0, 1.0 + 0x1p-52), 1.0 + 0x1p-52);
}

// All pairs of a sample of bit patterns, beside float32 rounded once.
void expect_halves(FoldType type, void (*widen)(const std::uint16_t*, std::size_t, float*),
                   void (*narrow)(const float*, std::size_t, std::uint16_t*)) {
    std::vector<std::uint16_t> into;
    std::vector<std::uint16_t> from;
    constexpr unsigned step = 257;  // prime, and so it meets all exponents
    for (unsigned a = 0; a < 65'536; a += step) {
        for (unsigned b = 0; b < 65'536; b += step) {
            into.push_back(static_cast<std::uint16_t>(a));
            from.push_back(static_cast<std::uint16_t>(b));
        }
    }
    std::vector<float> a(into.size());
    std::vector<float> b(into.size());
    widen(into.data(), into.size(), a.data());
    widen(from.data(), from.size(), b.data());
    for (const FoldOperation operation :
         {FoldOperation::minimum, FoldOperation::maximum, FoldOperation::product, FoldOperation::sum}) {
        const std::vector<float> wide = folded(FoldType::float32, operation, a, b);
        std::vector<std::uint16_t> expected(wide.size());
        narrow(wide.data(), wide.size(), expected.data());
        std::vector<std::uint16_t> found = folded(type, operation, into, from);
        for (std::size_t i = 0; i < wide.size(); ++i) {
            if (std::isnan(wide[i])) found[i] = expected[i];  // which of two NaN remains is open
        }
        EXPECT_EQ(found, expected) << to_string(type) << ' ' << to_string(operation);
    }
}

TEST(Fold, FloatsOf16BitsAreRoundedOnce) {
    expect_halves(FoldType::float16, halves_to_floats, floats_to_halves);
    expect_halves(FoldType::bfloat16, bfloats_to_floats, floats_to_bfloats);
}

// Ranks of different builds share a job: a change of one of these numbers breaks such jobs.
TEST(Fold, NumbersAndNamesMatchTheProtocol) {
    for (const ElementType type : element_types) {
        EXPECT_EQ(static_cast<unsigned>(fold_type_of(type)), static_cast<unsigned>(type));
        EXPECT_EQ(to_string(fold_type_of(type)), to_string(type));
        EXPECT_EQ(bytes_of(fold_type_of(type)), bytes_of(type));
    }
    EXPECT_EQ(static_cast<unsigned>(FoldType::int8), 6U);
    EXPECT_EQ(static_cast<unsigned>(FoldType::uint8), 7U);
    EXPECT_EQ(static_cast<unsigned>(FoldType::int16), 8U);
    EXPECT_EQ(static_cast<unsigned>(FoldType::boolean), 9U);
    EXPECT_EQ(to_string(FoldType::boolean), "bool");
    unsigned number = 3;  // after those of comm::Reduction
    for (const FoldOperation operation : operations) EXPECT_EQ(static_cast<unsigned>(operation), number++);
    EXPECT_EQ(to_string(FoldOperation::bit_and), "bitwise and");
}

}  // namespace
}  // namespace atp::numeric
