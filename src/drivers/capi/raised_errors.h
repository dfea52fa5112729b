// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace atp::capi {

// The last errors that this process raised as exceptions of PyTorch, whose types hold only a text.
//
// Ownership: owns at most `most_errors`. Calling order: any. Threads: any. Failure: the oldest errors are forgotten.
class RaisedErrors {
  public:
    // Returns the text for the exception.
    [[nodiscard]] std::string note(const Error& error);
    // The error whose text `text` contains: PyTorch may add a stack, or the text of another exception.
    [[nodiscard]] std::optional<Error> find(std::string_view text) const;

  private:
    static constexpr std::size_t most_errors = 64;

    mutable std::mutex mutex_;
    std::deque<std::pair<std::string, Error>> errors_;  // the latest first
};

// The errors of this process.
[[nodiscard]] RaisedErrors& raised_errors();

// The text of `error` in an exception, which raised_errors() then knows.
[[nodiscard]] std::string message_of(const Error& error);

}  // namespace atp::capi
