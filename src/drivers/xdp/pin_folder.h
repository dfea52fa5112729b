// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "net/descriptor.h"

namespace atp::xdp {

// A folder on a bpffs, in which the kernel keeps maps while no process has them open. open() mounts a bpffs if there is
// none.
//
// Ownership: this process alone has the folder until it ends. The content of the folder stays.
// Failure: open() reports missing privilege, or that another process has the folder.
class PinFolder {
  public:
    [[nodiscard]] static Result<PinFolder> open(const std::string& path);

  private:
    explicit PinFolder(net::Descriptor lock) : lock_(std::move(lock)) {}

    net::Descriptor lock_;
};

}  // namespace atp::xdp
