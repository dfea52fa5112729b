// SPDX-License-Identifier: Apache-2.0
#include "comm/operation_times.h"

namespace atp::comm {

void OperationTimes::begin(Time now) {
    const std::scoped_lock lock(mutex_);
    ++sums_.operations;
    if (open_++ == 0) since_ = now;
}

void OperationTimes::end(Time now) {
    const std::scoped_lock lock(mutex_);
    if (--open_ == 0) sums_.in_flight += now - since_;
}

void OperationTimes::wait(Duration waited) {
    const std::scoped_lock lock(mutex_);
    sums_.waiting += waited;
}

OperationTimes::Sums OperationTimes::sums(Time now) const {
    const std::scoped_lock lock(mutex_);
    Sums sums = sums_;
    if (open_ != 0) sums.in_flight += now - since_;
    return sums;
}

}  // namespace atp::comm
