// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "xdp/kernel_table.h"

namespace atp::test {

// A kernel that forbids programs says so, and its test is skipped; anything else that keeps it from being loaded is a
// failure.
class LoadedSwitch : public testing::Test {
  protected:
    void load(const xdp::KernelSwitchConfig& config) {
        auto loaded = xdp::KernelSwitch::load(config);
        if (!loaded && loaded.error().code == EPERM) GTEST_SKIP() << to_string(loaded.error());
        ASSERT_TRUE(loaded) << to_string(loaded.error());
        machine = std::move(*loaded);
    }

    std::unique_ptr<xdp::KernelSwitch> machine;
};

}  // namespace atp::test
