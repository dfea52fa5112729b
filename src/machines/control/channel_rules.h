// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "wire/control.h"

namespace atp::control {

// Rules of a protocol other than ATP, for the tree that its channels join. The product has no such protocol.
class ChannelRules {
  public:
    virtual ~ChannelRules() = default;

    // The reason to refuse this JOIN, whose channel does not use ATP; nullopt: the switch accepts it.
    [[nodiscard]] virtual std::optional<std::string> objection_to(const wire::Join& join) const = 0;
};

}  // namespace atp::control
