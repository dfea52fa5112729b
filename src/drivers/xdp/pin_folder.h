// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "net/descriptor.h"

namespace atp::xdp {

// Where the kernel keeps maps while no process does: a folder in a file system of its own, the bpffs, which is mounted
// where there is none yet.
//
// Owns: the folder, alone among processes, until it ends however it ends. What is in the folder stays.
// Failure: open() says whether privilege is missing, or another process has the folder.
class PinFolder {
  public:
    [[nodiscard]] static Result<PinFolder> open(const std::string& path);

  private:
    explicit PinFolder(net::Descriptor lock) : lock_(std::move(lock)) {}

    net::Descriptor lock_;
};

}  // namespace atp::xdp
