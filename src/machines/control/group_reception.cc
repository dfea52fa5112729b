// SPDX-License-Identifier: Apache-2.0
#include "control/group_reception.h"

#include <algorithm>

namespace atp::control {

bool GroupReception::handle_message(Time now) {
    received_until_ = now + memory;
    return !reported_ && receives(now);
}

void GroupReception::handle_result(Receipt receipt) {
    if (receipt == Receipt::once) ++group_results_;
    if (receipt == Receipt::asked_for) ++own_results_;
    if (receipt == Receipt::to_each) to_each_ = true;
}

bool GroupReception::assess(Time now, bool let_in) {
    if (group_results_ > own_results_) {
        pause_ = first_pause;
    } else if (reported_ && !to_each_ && own_results_ > most_results_asked_for) {
        received_until_ = {};
        distrusts_until_ = now + pause_;
        pause_ = std::min(2 * pause_, longest_pause);
    }
    group_results_ = own_results_ = 0;
    to_each_ = false;
    reported_ = receives(now);
    unanswered_joins_ = reported_ || !let_in ? 0 : unanswered_joins_ + 1;
    return reported_;
}

}  // namespace atp::control
