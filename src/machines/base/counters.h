// SPDX-License-Identifier: Apache-2.0
// Structs of counters by name. Each struct has one table; sums, differences and reports are loops over the table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace atp {

// One counter of a struct. Counters only grow: a total is the sum, the growth is the difference.
template <class Counters>
struct CounterField {
    std::string_view name;            // key in reports
    std::uint64_t& (*in)(Counters&);  // returns the counter of a struct
    std::uint64_t (*value_of)(const Counters&);
};

namespace detail {

template <class>
struct MemberPointer;
template <class Class, class Member>
struct MemberPointer<Member Class::*> {
    using Struct = Class;
};

}  // namespace detail

// counter<&C::member>(name), or counter<&C::array, index>(name) for an element of an array.
template <auto member, std::size_t... index>
[[nodiscard]] constexpr auto counter(std::string_view name) {
    static_assert(sizeof...(index) <= 1);
    using Counters = typename detail::MemberPointer<decltype(member)>::Struct;
    if constexpr (sizeof...(index) == 0) {
        return CounterField<Counters>{name, [](Counters& counters) -> std::uint64_t& { return counters.*member; },
                                      [](const Counters& counters) { return counters.*member; }};
    } else {
        return CounterField<Counters>{
            name, [](Counters& counters) -> std::uint64_t& { return ((counters.*member)[index], ...); },
            [](const Counters& counters) { return ((counters.*member)[index], ...); }};
    }
}

template <class Counters, std::size_t count>
using CounterFields = std::array<CounterField<Counters>, count>;

// True if the table names each counter of the struct once, except `unnamed` counters. For a static_assert after the
// table.
template <class Counters, std::size_t count>
[[nodiscard]] consteval bool names_all(const CounterFields<Counters, count>& fields, std::size_t unnamed = 0) {
    Counters counters{};
    for (const auto& field : fields) {
        if (++field.in(counters) != 1) return false;
    }
    return sizeof(Counters) == (count + unnamed) * sizeof(std::uint64_t);
}

template <class Counters, std::size_t count>
void add_counters(const CounterFields<Counters, count>& fields, const Counters& addend, Counters& sum) {
    for (const auto& field : fields) field.in(sum) += field.value_of(addend);
}

// Growth from `before` to `now`.
template <class Counters, std::size_t count>
[[nodiscard]] Counters growth(const CounterFields<Counters, count>& fields, const Counters& now,
                              const Counters& before) {
    Counters difference{};
    for (const auto& field : fields) field.in(difference) = field.value_of(now) - field.value_of(before);
    return difference;
}

}  // namespace atp
