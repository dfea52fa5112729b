// SPDX-License-Identifier: Apache-2.0
#include "capi/raised_errors.h"

#include <algorithm>

namespace atp::capi {
namespace {

// Programs written for Gloo look for "Timed out" in the text of an exception.
std::string text_of(const Error& error) {
    std::string text = "atp: " + to_string(error);
    const std::size_t reason = text.find(": timed out");
    if (error.reason == Reason::timed_out && reason != std::string::npos) text.replace(reason, 3, ": T");
    return text;
}

}  // namespace

std::string RaisedErrors::note(const Error& error) {
    std::string text = text_of(error);
    const std::scoped_lock lock(mutex_);
    errors_.emplace_front(text, error);
    if (errors_.size() > most_errors) errors_.pop_back();
    return text;
}

std::optional<Error> RaisedErrors::find(std::string_view text) const {
    const std::scoped_lock lock(mutex_);
    const auto is_in = [&](const auto& raised) { return text.find(raised.first) != std::string_view::npos; };
    const auto found = std::ranges::find_if(errors_, is_in);
    return found == errors_.end() ? std::nullopt : std::optional(found->second);
}

RaisedErrors& raised_errors() {
    static RaisedErrors errors;
    return errors;
}

std::string message_of(const Error& error) { return raised_errors().note(error); }

}  // namespace atp::capi
