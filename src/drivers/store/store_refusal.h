// SPDX-License-Identifier: Apache-2.0
// Why a store does not do what it is asked: the one word for its table, its messages and its clients.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "base/result.h"
#include "base/time.h"

namespace atp::store {

// On the wire as it stands here.
enum class Status : std::uint8_t {
    done = 1,
    cancelled,  // the client asked so; the fields are the keys that were missing
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

// As Store's callers see it.
[[nodiscard]] Failure to_failure(const Refusal& refusal, std::string peer);
[[nodiscard]] Failure nobody_has_set(std::span<const std::string> keys, std::string peer, Duration elapsed);

}  // namespace atp::store
