// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atp::xdp {

// Where the program runs. native: in the driver. generic: behind a driver that does not support XDP. Generic mode is
// slower, and needs frames that no offload has merged.
enum class AttachMode : std::uint8_t { native, generic };
[[nodiscard]] std::string_view to_string(AttachMode mode);

// The program on one interface. It stays attached until detach(), also after the end of this process: packets are
// aggregated while user space restarts. While the program is in the driver, GRO merges the packets that it passes.
//
// Failure: attach() refuses an interface with a foreign program, as does check(), which changes nothing. attach()
// replaces a program of an earlier start without a gap. detach() leaves foreign programs attached, and returns the
// reason if it cannot detach its own.
class Attachment {
  public:
    [[nodiscard]] static Result<void> check(const std::string& interface, int program);
    [[nodiscard]] static Result<Attachment> attach(const std::string& interface, int program);
    [[nodiscard]] Result<void> detach() const;

    // False if the program was detached from outside, or the name belongs to another interface now.
    [[nodiscard]] bool is_attached() const;

    [[nodiscard]] const std::string& interface() const { return interface_; }
    [[nodiscard]] AttachMode mode() const { return mode_; }
    [[nodiscard]] bool replaced() const { return replaced_; }  // a program of an earlier start

  private:
    Attachment(std::string interface, int index, int program, AttachMode mode, bool replaced)
        : interface_(std::move(interface)), index_(index), program_(program), mode_(mode), replaced_(replaced) {}

    std::string interface_;
    int index_;
    int program_;
    AttachMode mode_;
    bool replaced_;
    bool began_merging_ = false;
};

// Detaches programs of earlier starts, which share maps with `program`, from all interfaces except these.
void detach_elsewhere(int program, const std::vector<std::string>& interfaces);

}  // namespace atp::xdp
