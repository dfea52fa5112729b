// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "net/result.h"

namespace atp::xdp {

// The program that looks at what leaves one interface, as Attachment is that on what arrives: it stays there until
// detach(), and replaces one of an earlier start. Filters of others are let alone, before and behind it, and so is the
// clsact qdisc that it stands in with them: that one stays.
//
// Failure: attach() says what this kernel lacks, or that somebody else has its place.
class EgressAttachment {
  public:
    [[nodiscard]] static net::Result<EgressAttachment> attach(const std::string& interface, int program);
    void detach() const;

  private:
    EgressAttachment(int index, int program) : index_(index), program_(program) {}

    int index_;
    int program_;
};

}  // namespace atp::xdp
