// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace atp::xdp {

// An interface may have all programs: those at tc egress have different priorities.
enum class FilterPlace : std::uint8_t {
    arriving,  // of the kernel switch at tc ingress, behind its XDP program
    leaving,   // of the kernel switch at tc egress; it knows its programs by their maps
    marker,    // of Marker at tc egress, which replaces any program there
};

// A program that inspects the frames of one interface at tc. As with Attachment, it stays until detach(), and replaces
// the program of an earlier start. Filters of other programs stay as they are, and so does the clsact qdisc that all
// filters share.
//
// Failure: attach() reports what the kernel lacks, or that a foreign filter has its handle and priority.
class FilterAttachment {
  public:
    [[nodiscard]] static Result<FilterAttachment> attach(const std::string& interface, int program, FilterPlace place);
    void detach() const { detach_from(index_, program_, place_); }
    // Detaches a program that shares maps with `program` from an interface.
    static void detach_from(int index, int program, FilterPlace place);

    [[nodiscard]] bool replaced() const { return replaced_; }  // a program of an earlier start

  private:
    FilterAttachment(int index, int program, FilterPlace place, bool replaced)
        : index_(index), program_(program), place_(place), replaced_(replaced) {}

    int index_;
    int program_;
    FilterPlace place_;
    bool replaced_;
};

}  // namespace atp::xdp
