// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace atp::xdp {

// An interface may have both programs: their filters have different priorities.
enum class EgressPlace : std::uint8_t {
    kernel_switch,  // of the kernel switch, which knows it by its maps
    marker,         // of Marker, which replaces any program there
};

// The program that inspects frames that leave one interface. As with Attachment, it stays until detach(), and replaces
// the program of an earlier start. Filters of other programs stay as they are, and so does the clsact qdisc that all
// filters share.
//
// Failure: attach() reports what the kernel lacks, or that a foreign filter has its handle and priority.
class EgressAttachment {
  public:
    [[nodiscard]] static Result<EgressAttachment> attach(const std::string& interface, int program,
                                                         EgressPlace place = EgressPlace::kernel_switch);
    void detach() const { detach_from(index_, program_, place_); }
    // Detaches a program that shares maps with `program` from an interface.
    static void detach_from(int index, int program, EgressPlace place = EgressPlace::kernel_switch);

    [[nodiscard]] bool replaced() const { return replaced_; }  // a program of an earlier start

  private:
    EgressAttachment(int index, int program, EgressPlace place, bool replaced)
        : index_(index), program_(program), place_(place), replaced_(replaced) {}

    int index_;
    int program_;
    EgressPlace place_;
    bool replaced_;
};

}  // namespace atp::xdp
