// SPDX-License-Identifier: Apache-2.0
#include "apps/common/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace atp::apps {
namespace {

TEST(StopSignals, SecondCtrlCDoesNotEndACommandThatHasStopped) {
    const auto stop_twice = [] {
        {
            const StopSignals signals;
            std::raise(SIGINT);
            static_cast<void>(signals.wait());
            std::raise(SIGINT);
            std::raise(SIGTERM);
        }
        std::_Exit(EXIT_SUCCESS);
    };
    EXPECT_EXIT(stop_twice(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

}  // namespace
}  // namespace atp::apps
