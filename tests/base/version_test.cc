// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace atp {
namespace {

TEST(Version, VersionHasThreeNumbersAndStandsAfterTheNameOfTheSoftware) {
    EXPECT_TRUE(std::regex_match(software_version(), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << software_version();
    EXPECT_EQ(software_name(), std::string("atp ") + software_version());
}

}  // namespace
}  // namespace atp
