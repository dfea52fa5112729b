// SPDX-License-Identifier: Apache-2.0
// Results of the functions of bridge.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>

#include "base/result.h"
#include "capi/bridge.h"
#include "capi/raised_errors.h"

namespace atp::capi {

template <std::size_t size>
void copy_text(std::string_view from, char (&to)[size]) {
    const std::size_t length = std::min(from.size(), size - 1);
    std::copy_n(from.data(), length, to);
    to[length] = '\0';
}

// No exception may reach C. Of an error, `text` gets what Python raises.
template <class Body>
std::int32_t in_bridge(atp_bridge_text* text, const Body& body) noexcept {
    try {
        const Result<void> done = body();
        if (done) return 0;
        copy_text(message_of(done.error()), text->text);
    } catch (const std::exception& thrown) {
        copy_text(thrown.what(), text->text);
    }
    return 1;
}

}  // namespace atp::capi
