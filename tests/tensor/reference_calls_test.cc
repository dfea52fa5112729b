// SPDX-License-Identifier: Apache-2.0
#include "tensor/reference_calls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atp::tensor {
namespace {

constexpr std::nullopt_t none = std::nullopt;
using References = std::vector<std::optional<std::uint64_t>>;

// Each letter is a call; equal letters are equal kinds.
References references_of(ReferenceCalls& sequence, std::string_view calls) {
    References found;
    for (const char call : calls) found.push_back(sequence.add({.detail = static_cast<std::uint32_t>(call)}));
    return found;
}

References references_of(std::string_view calls) {
    ReferenceCalls sequence;
    return references_of(sequence, calls);
}

TEST(ReferenceCalls, FirstCallOfAKindHasNoReference) {
    EXPECT_EQ(references_of("abc"), (References{none, none, none}));
}

TEST(ReferenceCalls, EachPartOfAKindMakesADifference) {
    ReferenceCalls sequence;
    const OperationKind kind{.operation = 1, .detail = 2, .elements = 3};
    static_cast<void>(sequence.add(kind));
    for (const OperationKind other : {OperationKind{.operation = 2, .detail = 2, .elements = 3},
                                      OperationKind{.operation = 1, .detail = 3, .elements = 3},
                                      OperationKind{.operation = 1, .detail = 2, .elements = 4}}) {
        EXPECT_EQ(sequence.add(other), none);
    }
    EXPECT_EQ(sequence.add(kind), 0U);
}

TEST(ReferenceCalls, H50_EqualBucketsFindThoseOfTheIterationBefore) {
    const References found = references_of(
        "baaac"
        "baaac"
        "baaac");
    for (std::uint64_t call = 5; call < found.size(); ++call) EXPECT_EQ(found[call], call - 5) << call;
}

TEST(ReferenceCalls, OfEquallyGoodReferencesTheLatestCounts) {
    EXPECT_EQ(references_of("ab"
                            "cb"
                            "db"),
              (References{none, none, none, 1, none, 3}));
}

TEST(ReferenceCalls, LongerAgreementCountsMoreThanALaterCall) {
    EXPECT_EQ(references_of("xya"
                            "zya"
                            "xya")
                  .back(),
              2U);
}

TEST(ReferenceCalls, AgreementBeyondTheLimitIsNotCompared) {
    ReferenceCalls sequence;
    const References found = references_of(sequence, std::string(200, 'a'));
    EXPECT_EQ(found.back(), 198U) << "all references agree as far as they are compared, so the latest one counts";
}

TEST(ReferenceCalls, CallIsForgottenAfterManyOthers) {
    ReferenceCalls sequence;
    static_cast<void>(sequence.add({.detail = 7}));
    for (std::uint32_t call = 0; call + 2 < ReferenceCalls::most_calls; ++call) {
        static_cast<void>(sequence.add({.detail = 100 + call}));
    }
    EXPECT_EQ(sequence.add({.detail = 7}), 0U) << "the oldest call that is remembered";
    ReferenceCalls longer;
    static_cast<void>(longer.add({.detail = 7}));
    for (std::uint32_t call = 0; call + 1 < ReferenceCalls::most_calls; ++call) {
        static_cast<void>(longer.add({.detail = 100 + call}));
    }
    EXPECT_EQ(longer.add({.detail = 7}), none);
}

// The definition, without increments: compares all predecessors of each call again.
std::optional<std::uint64_t> by_definition(const std::vector<char>& calls) {
    const std::size_t last = calls.size() - 1;
    std::optional<std::uint64_t> best;
    std::size_t most = 0;
    for (std::size_t call = last; call-- > 0;) {
        std::size_t equal = 0;
        while (equal < ReferenceCalls::most_equal && equal <= call && calls[call - equal] == calls[last - equal])
            ++equal;
        if (equal > most) {
            most = equal;
            best = call;
        }
    }
    return best;
}

TEST(ReferenceCalls, IncrementalComparisonEqualsTheDefinition) {
    ReferenceCalls sequence;
    std::vector<char> calls;
    std::uint32_t random = 1;
    for (std::size_t call = 0; call < ReferenceCalls::most_calls; ++call) {
        random = random * 1664525U + 1013904223U;
        calls.push_back(static_cast<char>('a' + (random >> 30U)));
        const auto found = sequence.add({.detail = static_cast<std::uint32_t>(calls.back())});
        EXPECT_EQ(found, by_definition(calls)) << call;
    }
}

}  // namespace
}  // namespace atp::tensor
