// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace atp::figure {

// Calls work(0), work(1) ... work(count - 1), several at once on that many threads, and returns when all have returned.
// Where some threw, the rest is not begun and the first of them is thrown.
void for_each_on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace atp::figure
