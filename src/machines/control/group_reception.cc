// SPDX-License-Identifier: Apache-2.0
#include "control/group_reception.h"

#include <algorithm>

namespace atp::control {

bool GroupReception::handle_message(Time now) {
    received_until_ = now + memory;
    return !reported_ && receives(now);
}

bool GroupReception::assess(Time now, bool let_in) {
    if (group_results_ > own_results_) {
        pause_ = first_pause;
    } else if (reported_ && own_results_ > most_results_asked_for) {
        received_until_ = {};
        distrusts_until_ = now + pause_;
        pause_ = std::min(2 * pause_, longest_pause);
    }
    group_results_ = own_results_ = 0;
    reported_ = receives(now);
    unanswered_joins_ = reported_ || !let_in ? 0 : unanswered_joins_ + 1;
    return reported_;
}

}  // namespace atp::control
