// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

namespace atp {
namespace {

TEST(Error, PrintsOperationPeerReasonAndTime) {
    const Error error{Operation::bind,
                      Reason::denied,
                      EACCES,
                      "10.0.0.1:80",
                      std::chrono::microseconds(1500),
                      "ports below 1024 need privilege"};
    EXPECT_EQ(to_string(error),
              "bind 10.0.0.1:80: denied (EACCES, Permission denied) after 1.500 ms: ports below 1024 need privilege");
    EXPECT_EQ(to_string(Error{Operation::parse, Reason::malformed, 0, "x", {}, ""}), "parse x: malformed");
}

TEST(Error, BlamesRanksOrAPlace) {
    const Error of_rank = fail_by_rank(Operation::join, Reason::refused, 3, "it ended").value();
    EXPECT_EQ(to_string(of_rank), "join rank 3: refused: it ended");
    EXPECT_EQ(of_rank.ranks, std::vector<std::uint32_t>{3});
    EXPECT_EQ(of_rank.place(), "");
    EXPECT_EQ(fail(Operation::join, Reason::refused, "10.0.0.1:4790", "").value().place(), "10.0.0.1:4790");
    EXPECT_EQ(list_of_ranks(std::vector<std::uint32_t>{1, 2}), "ranks 1, 2");
    EXPECT_EQ(list_of_ranks({}), "");
}

TEST(Error, RecoverableIsTrueForErrorsThatARetryCanResolve) {
    EXPECT_EQ(reason_of(EMSGSIZE), Reason::too_large);
    EXPECT_EQ(reason_of(ENOBUFS), Reason::exhausted);
    EXPECT_EQ(reason_of(EIO), Reason::failed);
    EXPECT_TRUE(fail_with_errno(Operation::send, ENETUNREACH).value().recoverable());
    EXPECT_TRUE(fail_with_errno(Operation::send, EINTR).value().recoverable());
    EXPECT_FALSE(fail_with_errno(Operation::send, EMSGSIZE).value().recoverable());
    EXPECT_FALSE(fail_with_errno(Operation::send, EIO).value().recoverable());
}

}  // namespace
}  // namespace atp
