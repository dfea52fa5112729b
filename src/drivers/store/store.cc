// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <utility>

namespace atp::store {

Result<std::string> Store::get(std::string_view key, Time deadline) {
    const std::string one(key);
    auto values = get_all(std::span(&one, 1), deadline);
    if (!values) return Failure(std::move(values).error());
    return std::move(values->front());
}

}  // namespace atp::store
