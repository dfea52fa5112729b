// SPDX-License-Identifier: Apache-2.0
// Result of one check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atp::doctor {

enum class Status : std::uint8_t {
    ok,
    warn,  // jobs run, but slower than they could, or with a deviation
    fail,  // jobs do not run, or run badly
};

struct Finding {
    Status status = Status::ok;
    std::string name = {};
    std::string found = {};
    std::string fix = {};  // what to do; empty: nothing
};

[[nodiscard]] std::string_view to_string(Status status);
[[nodiscard]] bool passed(const std::vector<Finding>& findings);  // none failed

}  // namespace atp::doctor
