// SPDX-License-Identifier: Apache-2.0
#include "numeric/fold.h"

#include <array>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "numeric/half_bits.h"

namespace atp::numeric {
namespace {

struct TypeOfFold {
    std::string_view name;
    std::size_t bytes;
    bool has_bits;
};

// Indexed by the type.
constexpr std::array<TypeOfFold, 10> types_of_folds{{{"float32", 4, false},
                                                     {"float64", 8, false},
                                                     {"float16", 2, false},
                                                     {"bfloat16", 2, false},
                                                     {"int32", 4, true},
                                                     {"int64", 8, true},
                                                     {"int8", 1, true},
                                                     {"uint8", 1, true},
                                                     {"int16", 2, true},
                                                     {"bool", 1, true}}};

const TypeOfFold& describe(FoldType type) { return types_of_folds.at(static_cast<std::size_t>(type)); }

// Each format converts between an element in memory and the value that is computed with.

template <class Number>
struct PlainElement {
    using Stored = Number;
    static Number load(Number stored) { return stored; }
    static Number store(Number value) { return value; }
};

struct HalfElement {
    using Stored = std::uint16_t;
    static float load(Stored stored) { return half::to_float(stored); }
    static Stored store(float value) { return half::from_float(value); }
};

struct BfloatElement {
    using Stored = std::uint16_t;
    static float load(Stored stored) { return half::bfloat_to_float(stored); }
    static Stored store(float value) { return half::bfloat_from_float(value); }
};

struct BooleanElement {
    using Stored = std::uint8_t;
    static bool load(Stored stored) { return stored != 0; }
    static Stored store(bool value) { return value ? 1 : 0; }
};

template <class Value>
bool is_nan(Value value) {
    if constexpr (std::floating_point<Value>) return std::isnan(value);
    return false;
}

// In which an integer wraps: shorter ones would become `int`, whose overflow is undefined.
template <class Value>
using Wrapping = std::conditional_t<sizeof(Value) < sizeof(std::uint32_t), std::uint32_t, std::make_unsigned_t<Value>>;

struct Minimum {
    template <class Value>
    Value operator()(Value a, Value b) const {
        return !is_nan(a) && (b < a || is_nan(b)) ? b : a;
    }
};

struct Maximum {
    template <class Value>
    Value operator()(Value a, Value b) const {
        return !is_nan(a) && (a < b || is_nan(b)) ? b : a;
    }
};

struct Product {
    template <class Value>
    Value operator()(Value a, Value b) const {
        if constexpr (std::floating_point<Value>) {
            return a * b;
        } else if constexpr (std::same_as<Value, bool>) {
            return a && b;
        } else {
            return static_cast<Value>(static_cast<Wrapping<Value>>(a) * static_cast<Wrapping<Value>>(b));
        }
    }
};

struct Sum {
    template <class Value>
    Value operator()(Value a, Value b) const {
        if constexpr (std::floating_point<Value>) {
            return a + b;
        } else if constexpr (std::same_as<Value, bool>) {
            return a || b;
        } else {
            return static_cast<Value>(static_cast<Wrapping<Value>>(a) + static_cast<Wrapping<Value>>(b));
        }
    }
};

struct BitAnd {
    template <std::integral Value>
    Value operator()(Value a, Value b) const {
        return static_cast<Value>(a & b);
    }
};

struct BitOr {
    template <std::integral Value>
    Value operator()(Value a, Value b) const {
        return static_cast<Value>(a | b);
    }
};

struct BitXor {
    template <std::integral Value>
    Value operator()(Value a, Value b) const {
        return static_cast<Value>(a ^ b);
    }
};

template <class Format, class Combine>
void fold_with(std::span<std::byte> into, std::span<const std::byte> from, const Combine& combine) {
    using Stored = typename Format::Stored;
    auto* const to = reinterpret_cast<Stored*>(into.data());
    const auto* const with = reinterpret_cast<const Stored*>(from.data());
    for (std::size_t i = 0; i < into.size() / sizeof(Stored); ++i) {
        to[i] = Format::store(combine(Format::load(to[i]), Format::load(with[i])));
    }
}

template <class Format>
void fold_numbers(FoldOperation operation, std::span<std::byte> into, std::span<const std::byte> from) {
    switch (operation) {
        case FoldOperation::minimum: return fold_with<Format>(into, from, Minimum());
        case FoldOperation::maximum: return fold_with<Format>(into, from, Maximum());
        case FoldOperation::product: return fold_with<Format>(into, from, Product());
        case FoldOperation::sum: return fold_with<Format>(into, from, Sum());
        default: return;
    }
}

template <class Format>
void fold_integers(FoldOperation operation, std::span<std::byte> into, std::span<const std::byte> from) {
    switch (operation) {
        case FoldOperation::bit_and: return fold_with<Format>(into, from, BitAnd());
        case FoldOperation::bit_or: return fold_with<Format>(into, from, BitOr());
        case FoldOperation::bit_xor: return fold_with<Format>(into, from, BitXor());
        default: return fold_numbers<Format>(operation, into, from);
    }
}

}  // namespace

FoldType fold_type_of(ElementType type) { return static_cast<FoldType>(type); }

std::size_t bytes_of(FoldType type) { return describe(type).bytes; }

std::string_view to_string(FoldType type) {
    return static_cast<std::size_t>(type) < types_of_folds.size() ? describe(type).name : "unknown";
}

std::string_view to_string(FoldOperation operation) {
    switch (operation) {
        case FoldOperation::minimum: return "minimum";
        case FoldOperation::maximum: return "maximum";
        case FoldOperation::product: return "product";
        case FoldOperation::bit_and: return "bitwise and";
        case FoldOperation::bit_or: return "bitwise or";
        case FoldOperation::bit_xor: return "bitwise xor";
        case FoldOperation::sum: return "exact sum";
    }
    return "unknown";
}

bool can_fold(FoldType type, FoldOperation operation) {
    const bool of_bits = operation == FoldOperation::bit_and || operation == FoldOperation::bit_or ||
                         operation == FoldOperation::bit_xor;
    return !of_bits || describe(type).has_bits;
}

void fold(FoldType type, FoldOperation operation, std::span<std::byte> into, std::span<const std::byte> from) {
    switch (type) {
        case FoldType::float32: return fold_numbers<PlainElement<float>>(operation, into, from);
        case FoldType::float64: return fold_numbers<PlainElement<double>>(operation, into, from);
        case FoldType::float16: return fold_numbers<HalfElement>(operation, into, from);
        case FoldType::bfloat16: return fold_numbers<BfloatElement>(operation, into, from);
        case FoldType::int32: return fold_integers<PlainElement<std::int32_t>>(operation, into, from);
        case FoldType::int64: return fold_integers<PlainElement<std::int64_t>>(operation, into, from);
        case FoldType::int8: return fold_integers<PlainElement<std::int8_t>>(operation, into, from);
        case FoldType::uint8: return fold_integers<PlainElement<std::uint8_t>>(operation, into, from);
        case FoldType::int16: return fold_integers<PlainElement<std::int16_t>>(operation, into, from);
        case FoldType::boolean: return fold_integers<BooleanElement>(operation, into, from);
    }
}

}  // namespace atp::numeric
