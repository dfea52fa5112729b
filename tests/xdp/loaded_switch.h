// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "xdp/kernel_table.h"

namespace atp::test {

// A fixture that loads the kernel program. If the kernel forbids programs, the fixture skips the test. If loading fails
// for another reason, the test fails.
class LoadedSwitch : public testing::Test {
  protected:
    void load(const xdp::KernelTableConfig& config) {
        auto loaded = xdp::KernelTable::load(config);
        if (!loaded && loaded.error().code == EPERM) GTEST_SKIP() << to_string(loaded.error());
        ASSERT_TRUE(loaded) << to_string(loaded.error());
        machine = std::move(*loaded);
    }

    std::unique_ptr<xdp::KernelTable> machine;
};

}  // namespace atp::test
