// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atp::xdp {

// Where frames meet the program: in the driver, or, where the driver has no place for it, behind it, which is slower
// and has to be given frames that no offload has merged.
enum class Mode : std::uint8_t { native, generic };
[[nodiscard]] std::string_view to_string(Mode mode);

// The program on one interface. It stays there whatever becomes of this process, until detach(): packets go on being
// aggregated while user space restarts.
//
// Failure: attach() refuses an interface that has a program of somebody else's, as check() says without touching it;
// one of an earlier start of ours is replaced, without a moment in which there is none. detach() leaves what is not
// ours alone, and says why what is ours stays. In between, the kernel merges what a driver with the program receives
// and passes.
class Attachment {
  public:
    [[nodiscard]] static Result<void> check(const std::string& interface, int program);
    [[nodiscard]] static Result<Attachment> attach(const std::string& interface, int program);
    [[nodiscard]] Result<void> detach() const;

    // Not where somebody has taken it off, or the interface is another one of that name.
    [[nodiscard]] bool stands() const;

    [[nodiscard]] const std::string& interface() const { return interface_; }
    [[nodiscard]] Mode mode() const { return mode_; }
    [[nodiscard]] bool replaced() const { return replaced_; }  // one of an earlier start of ours

  private:
    Attachment(std::string interface, int index, int program, Mode mode, bool replaced)
        : interface_(std::move(interface)), index_(index), program_(program), mode_(mode), replaced_(replaced) {}

    std::string interface_;
    int index_;
    int program_;
    Mode mode_;
    bool replaced_;
    bool began_merging_ = false;
};

// Takes programs of earlier starts of ours, those that share maps with this one, off all interfaces but these.
void detach_elsewhere(int program, const std::vector<std::string>& interfaces);

}  // namespace atp::xdp
