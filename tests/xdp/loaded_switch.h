// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
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

// A folder for the pinned maps of a program. The destructor removes the folder.
class PinFolder {
  public:
    PinFolder() : mounted_(mkdtemp(path_.data()) != nullptr && mount("bpf", path_.c_str(), "bpf", 0, nullptr) == 0) {}
    ~PinFolder() {
        if (mounted_) umount(path_.c_str());
        rmdir(path_.c_str());
    }
    PinFolder(const PinFolder&) = delete;
    PinFolder& operator=(const PinFolder&) = delete;

    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_ = "/tmp/atp-pins-XXXXXX";
    bool mounted_;
};

}  // namespace atp::test
