// SPDX-License-Identifier: Apache-2.0
#include "control/switch_room.h"

namespace atp::control {

SwitchRoom::RoomAnswer SwitchRoom::take(const JobKey& job) {
    if (channels_ >= most_channels_) return RoomAnswer::no_channel;
    if (!channels_of_jobs_.contains(job) && channels_of_jobs_.size() >= most_jobs_) return RoomAnswer::no_job;
    ++channels_of_jobs_[job];
    ++channels_;
    return RoomAnswer::granted;
}

bool SwitchRoom::is_half_full() const {
    return 2 * channels_of_jobs_.size() >= most_jobs_ + most_jobs_ % 2 ||
           2 * channels_ >= most_channels_ + most_channels_ % 2;
}

void SwitchRoom::give_back(const JobKey& job) {
    const auto found = channels_of_jobs_.find(job);
    if (found == channels_of_jobs_.end()) return;
    --channels_;
    if (--found->second == 0) channels_of_jobs_.erase(found);
}

}  // namespace atp::control
