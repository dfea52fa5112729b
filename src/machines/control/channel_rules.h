// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "wire/control.h"

namespace atp::control {

// Rules of a protocol other than ATP, for the tree that its channels join. The product has none.
class ChannelRules {
  public:
    virtual ~ChannelRules() = default;

    // Why the switch refuses this JOIN of a channel that is no channel of ATP; nullopt: it does not.
    [[nodiscard]] virtual std::optional<std::string> objection_to(const wire::Join& join) const = 0;
};

}  // namespace atp::control
