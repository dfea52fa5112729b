// SPDX-License-Identifier: Apache-2.0
// The errors of `atp switch --xdp` and `--link-rate` in a build without programs for the kernel.
#include <gtest/gtest.h>

#include "apps/atp/kernel_part.h"

namespace atp::cli {
namespace {

void expect_missing_parts(const Error& error, const char* flag) {
    EXPECT_EQ(error.reason, Reason::unsupported);
    const std::string text = to_string(error);
    for (const char* word : {flag, "this build", "clang", "bpftool", "libbpf"}) {
        EXPECT_NE(text.find(word), std::string::npos) << text;
    }
}

TEST(NoKernelPart, ErrorNamesTheMissingPartsOfTheBuild) {
    const auto part = apps::start_kernel_part({.interfaces = {"eth1"}}, {});
    ASSERT_FALSE(part);
    expect_missing_parts(part.error(), "--xdp");
    const auto marks = apps::start_marks_part({.rates = {{.interface = "eth1", .rate = 1'000'000}}});
    ASSERT_FALSE(marks);
    expect_missing_parts(marks.error(), "--link-rate");
}

}  // namespace
}  // namespace atp::cli
