// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/assignment_flags.h"

#include <CLI/CLI.hpp>

namespace atp::apps {
namespace {

constexpr std::uint32_t most_parts = 65'536;

}  // namespace

CLI::Option* add_assignment_flags(Flags& flags, policy::Assignment& assignment) {
    flags.flag("--linear", assignment.in_sequence, "Slots take aggregators in sequence, not by a hash");
    return flags.number("--partition", assignment.parts, 1, most_parts,
                        "Give each of N jobs an equal part of the aggregators to itself [1]");
}

std::vector<std::string> flags_of_assignment(const policy::Assignment& assignment) {
    std::vector<std::string> flags;
    if (assignment.in_sequence) flags.emplace_back("--linear");
    if (assignment.parts != 1) flags.insert(flags.end(), {"--partition", std::to_string(assignment.parts)});
    return flags;
}

std::shared_ptr<const protocol::IndexRule> rule_of(const policy::Assignment& assignment) {
    if (!assignment.in_sequence && assignment.parts == 1) return nullptr;
    return std::make_shared<const policy::Aggregators>(assignment);
}

}  // namespace atp::apps
