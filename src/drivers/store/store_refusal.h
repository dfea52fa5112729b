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
enum class Status : std::uint8_t {
    done = 1,
    cancelled,  // the client sent `cancel`; the fields are the keys that were missing
    malformed,
    version_mismatch,
    too_large,
    exhausted,
    rejected,
};
inline constexpr Status last_status = Status::rejected;

struct Refusal {
    Status status = Status::rejected;
    std::string text;
};

template <class Value>
using Outcome = tl::expected<Value, Refusal>;

[[nodiscard]] tl::unexpected<Refusal> refuse(Status status, std::string text);

// The error that callers of Store get.
[[nodiscard]] Failure to_failure(const Refusal& refusal, std::string peer);
// A timeout, with the keys that are missing.
[[nodiscard]] Failure nobody_has_set(std::span<const std::string> keys, std::string peer, Duration elapsed);

}  // namespace atp::store
