// SPDX-License-Identifier: Apache-2.0
// Why a store refuses a request. Its table, its messages and its clients share this type.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "base/result.h"
#include "base/time.h"

namespace atp::store {

// The values are those on the wire.
enum class StoreStatus : std::uint8_t {
    done = 1,
    cancelled,  // the client sent `cancel`; the fields are the keys that were missing
    malformed,
    version_mismatch,
    too_large,
    exhausted,
    rejected,
};
inline constexpr StoreStatus last_status = StoreStatus::rejected;

struct StoreRefusal {
    StoreStatus status = StoreStatus::rejected;
    std::string text;
};

template <class Value>
using Outcome = tl::expected<Value, StoreRefusal>;

[[nodiscard]] tl::unexpected<StoreRefusal> refuse(StoreStatus status, std::string text);

// The errors that callers of Store get, without control characters that a server may have put into them.
[[nodiscard]] Failure to_failure(const StoreRefusal& refusal, std::string peer);
// A timeout, with the keys that are missing.
[[nodiscard]] Failure keys_not_set(std::span<const std::string> keys, std::string peer, Duration elapsed);

}  // namespace atp::store
