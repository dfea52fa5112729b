// SPDX-License-Identifier: Apache-2.0
// The check that a Result is an error, and which one. In the namespace of Result.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/result.h"

namespace atp {

// What a test requires of an error. A field that is left out may be anything.
struct Required {
    ::testing::Matcher<Operation> operation = ::testing::_;
    ::testing::Matcher<Reason> reason = ::testing::_;
    ::testing::Matcher<const std::string&> peer = ::testing::_;
    ::testing::Matcher<const std::string&> text = ::testing::_;
    ::testing::Matcher<const std::string&> printed = ::testing::_;  // the whole error, by to_string()
};

template <class Value>
[[nodiscard]] ::testing::AssertionResult fails(const Result<Value>& result, const Required& with = {}) {
    if (result) return ::testing::AssertionFailure() << "no error";
    const Error& error = result.error();
    const bool as_required = with.operation.Matches(error.operation) && with.reason.Matches(error.reason) &&
                             with.peer.Matches(error.peer) && with.text.Matches(error.text) &&
                             with.printed.Matches(to_string(error));
    return (as_required ? ::testing::AssertionSuccess() : ::testing::AssertionFailure()) << to_string(error);
}

}  // namespace atp
