// SPDX-License-Identifier: Apache-2.0
#include "comm/hearing.h"

namespace atp::comm {

bool Hearing::handle_message(protocol::Time now) {
    heard_until_ = now + memory;
    return !said_ && hears(now);
}

bool Hearing::judge(protocol::Time now) {
    if (said_ && group_results_ == 0 && own_results_ > most_results_asked_for) distrusts_until_ = now + distrust;
    group_results_ = own_results_ = 0;
    said_ = hears(now);
    return said_;
}

}  // namespace atp::comm
