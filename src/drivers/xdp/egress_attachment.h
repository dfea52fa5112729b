// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace atp::xdp {

// The program that looks at what leaves one interface, as Attachment is that on what arrives: it stays there until
// detach(), and replaces one of an earlier start. Filters of others are let alone, before and behind it, and so is the
// clsact qdisc that it stands in with them: that one stays.
//
// Failure: attach() says what this kernel lacks, or that somebody else has its place.
class EgressAttachment {
  public:
    [[nodiscard]] static Result<EgressAttachment> attach(const std::string& interface, int program);
    void detach() const { detach_from(index_, program_); }
    // Takes one that shares maps with this program off an interface.
    static void detach_from(int index, int program);

    [[nodiscard]] bool replaced() const { return replaced_; }  // one of an earlier start of ours

  private:
    EgressAttachment(int index, int program, bool replaced) : index_(index), program_(program), replaced_(replaced) {}

    int index_;
    int program_;
    bool replaced_;
};

}  // namespace atp::xdp
