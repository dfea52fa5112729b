// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace atp::figure {

// Calls work(0) to work(count - 1) on `threads` threads, and returns when all calls have returned. After an exception
// no further call starts, and the first exception is rethrown.
void for_each_on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace atp::figure
