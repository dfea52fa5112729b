// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace atp::xdp {

// The program that inspects frames that leave one interface. As with Attachment, it stays until detach(), and replaces
// the program of an earlier start. Filters of other programs stay as they are, and so does the clsact qdisc that all
// filters share.
//
// Failure: attach() reports what the kernel lacks, or that a foreign filter has its handle and priority.
class EgressAttachment {
  public:
    [[nodiscard]] static Result<EgressAttachment> attach(const std::string& interface, int program);
    void detach() const { detach_from(index_, program_); }
    // Detaches a program that shares maps with `program` from an interface.
    static void detach_from(int index, int program);

    [[nodiscard]] bool replaced() const { return replaced_; }  // a program of an earlier start

  private:
    EgressAttachment(int index, int program, bool replaced) : index_(index), program_(program), replaced_(replaced) {}

    int index_;
    int program_;
    bool replaced_;
};

}  // namespace atp::xdp
