// SPDX-License-Identifier: Apache-2.0
#include "host/path_switch.h"

namespace atp::host {
inline namespace ATP_VARIANT {

void PathSwitch::handle_message(std::span<const std::byte> message, Time now) {
    using Change = control::InPathAgent::Change;
    const auto learnt = agent_.handle_message(message, now);
    if (learnt.change == Change::admit) {
        static_cast<void>(table_.admit(learnt.job.job, learnt.job.token, learnt.job.level));
    }
    while (const auto expired = agent_.poll_expired(now)) table_.dismiss(expired->job, expired->token);
}

}  // namespace ATP_VARIANT
}  // namespace atp::host
