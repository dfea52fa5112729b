// SPDX-License-Identifier: Apache-2.0
// What one check says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atp::doctor {

enum class Status : std::uint8_t {
    ok,
    warn,  // it works, and is slower or stranger than it need be
    fail,  // jobs will not run, or not well
};

struct Finding {
    Status status = Status::ok;
    std::string name = {};
    std::string found = {};
    std::string mend = {};  // empty where there is nothing to do
};

[[nodiscard]] std::string_view to_string(Status status);
[[nodiscard]] bool passed(const std::vector<Finding>& findings);  // none failed

}  // namespace atp::doctor
