// SPDX-License-Identifier: Apache-2.0
#include "comm/store.h"

#include <utility>

namespace atp::comm {

net::Result<std::string> Store::get(std::string_view key, protocol::Time deadline) {
    const std::string one(key);
    auto values = get_all(std::span(&one, 1), deadline);
    if (!values) return net::Failure(std::move(values).error());
    return std::move(values->front());
}

}  // namespace atp::comm
