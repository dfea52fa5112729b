// SPDX-License-Identifier: Apache-2.0
#include "observe/events.h"

#include <gtest/gtest.h>

namespace atp::observe {
namespace {

TEST(Events, RowsAreInTheOrderOfTheirEnumerators) {
    EXPECT_EQ(row_of(LogEvent::switch_started).words, "switch started");
    EXPECT_EQ(row_of(LogEvent::int32_fallback).words, "int32 fallback");
    EXPECT_EQ(&row_of(LogEvent::log_suppressed), &event_table().back());
}

TEST(Events, NamesOfSeveritiesReadAsThemselves) {
    for (const Severity severity :
         {Severity::trace, Severity::debug, Severity::info, Severity::warn, Severity::error, Severity::off}) {
        EXPECT_EQ(severity_of(to_string(severity)), severity);
    }
    EXPECT_FALSE(severity_of("verbose"));
    EXPECT_FALSE(severity_of(""));
}

}  // namespace
}  // namespace atp::observe
