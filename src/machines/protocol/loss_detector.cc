// SPDX-License-Identifier: Apache-2.0
#include "protocol/loss_detector.h"

#include <utility>

namespace atp::protocol {

LossDetector::LossDetector(std::uint32_t first_seq, std::size_t resends)
    : scanned_until_(first_seq), resent_(resends), waits_(resends) {
    newest_acks_.fill(first_seq - 1);
}

void LossDetector::note_ack(std::uint32_t seq) {
    for (std::size_t i = newest_acks_.size(); i-- > 0;) {
        if (seq == newest_acks_[i]) return;
        if (before(newest_acks_[i], seq)) std::swap(newest_acks_[i], seq);
    }
}

}  // namespace atp::protocol
