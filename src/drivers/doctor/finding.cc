// SPDX-License-Identifier: Apache-2.0
#include "doctor/finding.h"

#include <algorithm>

namespace atp::doctor {

std::string_view to_string(Status status) {
    switch (status) {
        case Status::ok: return "ok";
        case Status::warn: return "warn";
        case Status::fail: return "fail";
    }
    return "unknown";
}

bool passed(const std::vector<Finding>& findings) {
    return std::ranges::none_of(findings, [](const Finding& finding) { return finding.status == Status::fail; });
}

}  // namespace atp::doctor
