// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/result.h"

namespace atp::xdp {

// Where frames meet the program: in the driver, or, where the driver has no place for it, behind it, which is slower
// and has to be given frames that no offload has merged.
enum class Mode : std::uint8_t { native, generic };
[[nodiscard]] std::string_view to_string(Mode mode);

// The program on one interface. It stays there whatever becomes of this process, until detach(): packets go on being
// aggregated while user space restarts.
//
// Failure: attach() refuses an interface that has a program of somebody else's; one of an earlier start of ours is
// replaced, without a moment in which there is none. detach() leaves what is not ours alone. In between, the kernel
// merges what a driver with the program receives and passes.
class Attachment {
  public:
    [[nodiscard]] static net::Result<Attachment> attach(const std::string& interface, int program);
    void detach() const;

    [[nodiscard]] const std::string& interface() const { return interface_; }
    [[nodiscard]] Mode mode() const { return mode_; }

  private:
    Attachment(std::string interface, int index, int program, Mode mode, bool began_merging)
        : interface_(std::move(interface)),
          index_(index),
          program_(program),
          mode_(mode),
          began_merging_(began_merging) {}

    std::string interface_;
    int index_;
    int program_;
    Mode mode_;
    bool began_merging_;
};

}  // namespace atp::xdp
