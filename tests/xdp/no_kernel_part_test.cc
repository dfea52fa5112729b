// SPDX-License-Identifier: Apache-2.0
// The error of `atp switch --xdp` in a build without the kernel switch.
#include <gtest/gtest.h>

#include "apps/atp/kernel_part.h"

namespace atp::cli {
namespace {

TEST(NoKernelPart, ErrorNamesTheMissingPartsOfTheBuild) {
    const auto part = apps::start_kernel_part({.interfaces = {"eth1"}}, {});
    ASSERT_FALSE(part);
    EXPECT_EQ(part.error().reason, Reason::unsupported);
    const std::string text = to_string(part.error());
    for (const char* word : {"--xdp", "this build", "clang", "bpftool", "libbpf"}) {
        EXPECT_NE(text.find(word), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace atp::cli
