// SPDX-License-Identifier: Apache-2.0
// Between the C interface and what stands behind it: errors, options, enumerations, and exceptions that stay inside.
#pragma once

#include <atp/atp.h>

#include <exception>
#include <new>
#include <optional>

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/options.h"
#include "numeric/element_type.h"

namespace atp::capi {

// Fills `to`, where there is one, and returns the reason.
int report(const Error& error, atp_error* to);
[[nodiscard]] Error malformed(const char* text);
[[nodiscard]] Reason reason_from(int reason);

[[nodiscard]] Result<comm::Options> options_from(const atp_options* options);
[[nodiscard]] std::optional<numeric::ElementType> element_from(int element);
[[nodiscard]] std::optional<comm::Reduction> reduction_from(int reduction);
// `never` stands for the communicator's own timeout.
[[nodiscard]] Time deadline_from(std::int64_t timeout_ms);

// What `body` returns; nothing is thrown into C.
template <class Body>
int guarded(atp_error* error, const Body& body) noexcept {
    try {
        const Result<void> done = body();
        return done ? ATP_REASON_NONE : report(done.error(), error);
    } catch (const std::bad_alloc&) {
        return report({.reason = Reason::exhausted, .text = "no memory"}, error);
    } catch (const std::exception& thrown) {
        return report({.reason = Reason::failed, .text = thrown.what()}, error);
    }
}

}  // namespace atp::capi
