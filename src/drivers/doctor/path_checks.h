// SPDX-License-Identifier: Apache-2.0
// Checks of the path to a switch, and of the switch. They depend only on their arguments.
#pragma once

#include <string>
#include <vector>

#include "doctor/check_table.h"
#include "doctor/finding.h"
#include "doctor/path_probe.h"

namespace atp::doctor {

[[nodiscard]] Finding check_reachability(const PathFacts& facts);
// Versions of the protocol and of the software; `own_software`: that of this program.
[[nodiscard]] Finding check_version(const PathFacts& facts, const std::string& own_software);
[[nodiscard]] Finding check_tree(const PathFacts& facts);

// The checks below need a switch that answers HELLO.
[[nodiscard]] Finding check_round_trip(const PathFacts& facts);
[[nodiscard]] Finding check_path_mtu(const PathFacts& facts);
[[nodiscard]] Finding check_symmetry(const PathFacts& facts);
// `check`: the train of short packets, or of long ones.
[[nodiscard]] Finding check_train(const PathFacts& facts, CheckName check, const TrainReport& train);
[[nodiscard]] Finding check_marks(const PathFacts& facts);

// The table of the switch, and packets against it.
[[nodiscard]] Finding check_aggregators(const PathFacts& facts);
[[nodiscard]] Finding check_lanes(const PathFacts& facts);
// Replaces both functions above for a switch that aggregates in the kernel.
[[nodiscard]] Finding check_kernel(const PathFacts& facts, const client::ShardReport& shard);

// Checks of the switch's report.
[[nodiscard]] Finding check_switch_drops(const PathFacts& facts);
[[nodiscard]] Finding check_emulation(const PathFacts& facts);

// All checks that apply.
[[nodiscard]] std::vector<Finding> check_path(const PathFacts& facts, const std::string& own_software);

// Whether a listener at `name`, such as rank 0's store, accepts this host over TCP.
[[nodiscard]] Finding check_peer(const std::string& name, const Result<Duration>& connected);

}  // namespace atp::doctor
