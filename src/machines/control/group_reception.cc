// SPDX-License-Identifier: Apache-2.0
#include "control/group_reception.h"

#include <algorithm>

namespace atp::control {

bool GroupReception::handle_message(Time now) {
    heard_until_ = now + memory;
    return !said_ && hears(now);
}

bool GroupReception::judge(Time now, bool let_in) {
    if (group_results_ > own_results_) {
        distrust_ = first_distrust;
    } else if (said_ && own_results_ > most_results_asked_for) {
        heard_until_ = {};
        distrusts_until_ = now + distrust_;
        distrust_ = std::min(2 * distrust_, longest_distrust);
    }
    group_results_ = own_results_ = 0;
    said_ = hears(now);
    deaf_joins_ = said_ || !let_in ? 0 : deaf_joins_ + 1;
    return said_;
}

}  // namespace atp::control
