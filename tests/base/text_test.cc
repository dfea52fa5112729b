// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace atp {
namespace {

TEST(Listing, LongListNamesEightNumbersAndCountsTheRest) {
    const auto listed = [](int count) {
        std::vector<std::string> names;
        for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
        return list_some(names);
    };
    EXPECT_EQ(listed(0), "nothing");
    EXPECT_EQ(listed(1), "0");
    EXPECT_EQ(listed(2), "0 and 1");
    EXPECT_EQ(listed(3), "0, 1 and 2");
    EXPECT_EQ(listed(8), "0, 1, 2, 3, 4, 5, 6 and 7");
    EXPECT_EQ(listed(20), "0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
}

TEST(Listing, NounOfOneThingIsSingular) {
    EXPECT_EQ(counted(0, "worker"), "0 workers");
    EXPECT_EQ(counted(1, "worker"), "1 worker");
    EXPECT_EQ(counted(2, "worker"), "2 workers");
}

TEST(Printable, TextOfAnyLanguageIsUnchanged) {
    for (const std::string text : {"", "plain ~", "\u00A0\u00E4\u20AC", "\uD7FF\uE000\uFFFD", "\U00010000\U0010FFFF"}) {
        EXPECT_EQ(printable(text), text);
    }
}

TEST(FirstColumns, CutsNoCharacterAndCountsWideOnesTwice) {
    EXPECT_EQ(first_columns("abc", 2), "ab");
    EXPECT_EQ(first_columns("abc", 9), "abc");
    EXPECT_EQ(first_columns("\u00E4\u00F6\u00FC", 2), "\u00E4\u00F6");
    EXPECT_EQ(first_columns("\u65E5\u672C\u8A9E", 5), "\u65E5\u672C");
    EXPECT_EQ(first_columns("\u65E5", 1), "");
    EXPECT_EQ(first_columns("", 1), "");
}

TEST(Printable, ControlCharactersBecomeQuestionMarks) {
    EXPECT_EQ(printable("\x1b]52;c;QQ\a\r\n\t"), "?]52;c;QQ????");
    EXPECT_EQ(printable(std::string("a\0b\x7f", 4)), "a?b?");
    EXPECT_EQ(printable("\u0080\u009b31m\u009f"), "????31m??") << "one for each byte of C1";
    EXPECT_EQ(printable("a\u200bb\u202ec\u2028d\u2066\uFEFF\u061C"), "a???b???c???d????????")
        << "unseen, or reordering";
}

TEST(Printable, BytesThatAreNoUtf8BecomeQuestionMarks) {
    for (const std::string bytes : {"\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98",          // cut
                                    "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",  // too long
                                    "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
        EXPECT_EQ(printable(bytes), std::string(bytes.size(), '?'));
    }
    EXPECT_EQ(printable("a\xc3"
                        "b"),
              "a?b")
        << "the next character is kept";
}

// Any two bytes before a line end.
TEST(Printable, NoByteBelow32RemainsAndTheLengthStays) {
    std::string text(3, '\0');
    for (unsigned first = 0; first < 256; ++first) {
        for (unsigned second = 0; second < 256; ++second) {
            text = {static_cast<char>(first), static_cast<char>(second), '\n'};
            const std::string clean = printable(text);
            ASSERT_EQ(clean.size(), text.size());
            ASSERT_TRUE(std::ranges::none_of(clean, [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
            ASSERT_EQ(printable(clean), clean);
        }
    }
}

}  // namespace
}  // namespace atp
