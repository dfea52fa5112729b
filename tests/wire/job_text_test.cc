// SPDX-License-Identifier: Apache-2.0
#include "wire/job_text.h"

#include <gtest/gtest.h>

#include <utility>

namespace atp::wire {
namespace {

TEST(Job, NumberIsEightHexadecimalDigitsAndReadsBack) {
    for (const auto& [job, text] : {std::pair{0U, "00000000"}, {42U, "0000002a"}, {0xFFFFFFFFU, "ffffffff"}}) {
        EXPECT_EQ(job_to_string(job), text);
        EXPECT_EQ(parse_job(text), job);
    }
    EXPECT_EQ(parse_job("650DE528"), 0x650DE528U);
}

TEST(Job, OtherTextIsNoNumber) {
    for (const char* text : {"", "1", "2a", "1695409448", "0x650de5", "650de52g", "-50de528", " 50de528"}) {
        EXPECT_FALSE(parse_job(text)) << text;
    }
}

}  // namespace
}  // namespace atp::wire
