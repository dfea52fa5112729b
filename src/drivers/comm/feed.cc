// SPDX-License-Identifier: Apache-2.0
#include "comm/feed.h"

#include "comm/communicator.h"

namespace atp::comm {

void Feed::advance() {
    const std::scoped_lock lock(mutex_);
    if (communicator_ != nullptr) communicator_->wake_channels();
}

void Feed::fail(const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (communicator_ != nullptr) communicator_->end_channels(error);
}

void Feed::close() {
    const std::scoped_lock lock(mutex_);
    communicator_ = nullptr;
}

}  // namespace atp::comm
