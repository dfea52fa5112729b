// SPDX-License-Identifier: Apache-2.0
// Converts errors, options and enumerations between the C interface and C++, and keeps exceptions out of C.
#pragma once

#include <atp/atp.h>

#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/options.h"
#include "numeric/element_type.h"
#include "numeric/fold.h"

namespace atp::capi {

// Fills `to`, unless it is nullptr, and returns the number of the error's reason.
int report(const Error& error, atp_error* to);
[[nodiscard]] Error malformed(std::string text);
[[nodiscard]] Reason reason_from(int reason);

// Whether the bytes of a program's struct from `known` to `size` hold a value: fields of a newer header.
[[nodiscard]] bool sets_beyond(const void* object, std::size_t known, std::size_t size);
[[nodiscard]] Result<comm::Options> options_from(const atp_options* options);
[[nodiscard]] std::optional<numeric::ElementType> element_from(int element);
[[nodiscard]] std::optional<comm::Reduction> reduction_from(int reduction);
[[nodiscard]] std::optional<numeric::FoldOperation> fold_operation_from(int reduction);
// `never` means: use the communicator's own timeout.
[[nodiscard]] Time deadline_from(std::int64_t timeout_ms);

// Calls `body` and returns the number of its reason, 0 on success. An exception becomes an error, since no exception
// may reach C.
template <class Body>
int guarded(atp_error* error, const Body& body) noexcept {
    try {
        const Result<void> done = body();
        return done ? ATP_REASON_NONE : report(done.error(), error);
    } catch (const std::bad_alloc&) {
        return report({.reason = Reason::exhausted, .text = "out of memory"}, error);
    } catch (const std::exception& thrown) {
        return report({.reason = Reason::failed, .text = thrown.what()}, error);
    }
}

}  // namespace atp::capi
