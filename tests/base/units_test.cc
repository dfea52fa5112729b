// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <chrono>

namespace atp::units {
namespace {

TEST(Units, SizesParseWithDecimalAndBinaryPrefixes) {
    EXPECT_EQ(parse_size("4096"), 4096U);
    EXPECT_EQ(parse_size("12B"), 12U);
    EXPECT_EQ(parse_size("4kB"), 4'000U);
    EXPECT_EQ(parse_size("4MB"), 4'000'000U);
    EXPECT_EQ(parse_size("1.5GB"), 1'500'000'000U);
    EXPECT_EQ(parse_size("64KiB"), 65'536U);
    EXPECT_EQ(parse_size("25MiB"), 26'214'400U);
    EXPECT_EQ(parse_size("0"), 0U);
}

TEST(Units, MalformedSizeIsRefused) {
    for (const char* text :
         {"", "MB", "-1", "4 MB", "4mb", "4M", "1e9", "0x10", "nan", "inf", "99999999999GB", "4MBx"}) {
        EXPECT_EQ(parse_size(text), std::nullopt) << text;
    }
}

TEST(Units, NumberAboveAllBoundsIsTooLarge) {
    for (const char* text : {"9000001GB", "9000001Gbps", "9000001s", "99999999999999999"}) {
        EXPECT_TRUE(is_too_large(text)) << text;
    }
    for (const char* text : {"9000000GB", "99999999999XB", "", "fast"}) EXPECT_FALSE(is_too_large(text)) << text;
}

TEST(Units, RatesParseToBitsPerSecond) {
    EXPECT_EQ(parse_rate("100Gbps"), 100'000'000'000);
    EXPECT_EQ(parse_rate("500Mbit"), 500'000'000);
    EXPECT_EQ(parse_rate("25gbit"), 25'000'000'000);
    EXPECT_EQ(parse_rate("500mbit"), 500'000'000);
    EXPECT_EQ(parse_rate("40Gbit/s"), 40'000'000'000);
    EXPECT_EQ(parse_rate("2.5Gbps"), 2'500'000'000);
    EXPECT_EQ(parse_rate("9600"), 9600);
}

TEST(Units, MalformedRateIsRefused) {
    for (const char* text : {"", "fast", "0", "0Gbps", "100GB", "100Gb", "-5Mbit"}) {
        EXPECT_EQ(parse_rate(text), std::nullopt) << text;
    }
}

TEST(Units, NonzeroDurationWithoutUnitIsRefused) {
    EXPECT_EQ(parse_duration("250ns"), std::chrono::nanoseconds(250));
    EXPECT_EQ(parse_duration("1.5ms"), std::chrono::microseconds(1500));
    EXPECT_EQ(parse_duration("2s"), std::chrono::seconds(2));
    EXPECT_EQ(parse_duration("0"), std::chrono::nanoseconds(0));
    for (const char* text : {"", "5", "ms", "-1s", "1m"}) EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Units, SharesParseAsPercentOrFraction) {
    EXPECT_EQ(parse_percent("0.1%"), 0.001);
    EXPECT_EQ(parse_percent("0.001"), 0.001);
    EXPECT_EQ(parse_percent("5 %"), 0.05);
    EXPECT_EQ(parse_percent("0"), 0.0);
    EXPECT_EQ(parse_percent("0%"), 0.0);
    EXPECT_EQ(parse_percent("1"), 1.0);
    EXPECT_EQ(parse_percent("100%"), 1.0);
}

TEST(Units, MalformedShareIsRefused) {
    for (const char* text : {"", "%", " %", "5", "1.001", "100.1%", "-1%", "5  %", " 5%", "5% ", "5%%", "5 ", "nan%",
                             "inf", "1e-3", "half", "5percent"}) {
        EXPECT_EQ(parse_percent(text), std::nullopt) << text;
    }
}

TEST(Units, TextOfADurationParsesToTheSameDuration) {
    for (const std::int64_t ns : {0LL, 1LL, 999LL, 1000LL, 1500LL, 2'000'000LL, 3'000'000'000LL, 3'000'000'001LL}) {
        const std::chrono::nanoseconds duration{ns};
        EXPECT_EQ(parse_duration(duration_text(duration)), duration) << duration_text(duration);
    }
}

TEST(Units, WholeNumbersAreAcceptedWithinBounds) {
    EXPECT_EQ(parse_whole("1", 1, 64), 1U);
    EXPECT_EQ(parse_whole("64", 1, 64), 64U);
    EXPECT_EQ(parse_whole("18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
    for (const char* text : {"", "0", "65", "-1", "+1", "1 ", " 1", "1.0", "0x1", "18446744073709551616"}) {
        EXPECT_EQ(parse_whole(text, 1, 64), std::nullopt) << text;
    }
    EXPECT_EQ(whole_forms(1, 64), "a whole number from 1 to 64");
}

TEST(Units, RealNumbersAreAcceptedWithinBounds) {
    EXPECT_EQ(parse_real("0", 0, 1), 0.0);
    EXPECT_EQ(parse_real("1e-3", 0, 1), 0.001);
    EXPECT_EQ(parse_real("1", 0, 1), 1.0);
    for (const char* text : {"", "1.5", "-0.1", "nan", "inf", "0.5%", "0.5 "}) {
        EXPECT_EQ(parse_real(text, 0, 1), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace atp::units
