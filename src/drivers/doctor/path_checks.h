// SPDX-License-Identifier: Apache-2.0
// Judges the way to a switch, and the switch. Functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/path_probe.h"

namespace atp::doctor {

[[nodiscard]] Finding check_reachability(const PathFacts& facts);
// Of the protocol and of the software; `own_software` is this program's.
[[nodiscard]] Finding check_version(const PathFacts& facts, const std::string& own_software);
[[nodiscard]] Finding check_tree(const PathFacts& facts);

// The rest holds of switches that greet.
[[nodiscard]] Finding check_round_trip(const PathFacts& facts);
[[nodiscard]] Finding check_path_mtu(const PathFacts& facts);
[[nodiscard]] Finding check_symmetry(const PathFacts& facts);
// `size`: what the train's packets are called.
[[nodiscard]] Finding check_train(const PathFacts& facts, const std::string& size, const TrainReport& train);
[[nodiscard]] Finding check_marks(const PathFacts& facts);

// Of its table, and of packets against it.
[[nodiscard]] Finding check_aggregators(const PathFacts& facts);
[[nodiscard]] Finding check_lanes(const PathFacts& facts);
// In place of both, of a switch that aggregates inside the kernel.
[[nodiscard]] Finding check_kernel(const PathFacts& facts, const client::KernelReport& kernel);

// Of what the switch reports.
[[nodiscard]] Finding check_switch_drops(const PathFacts& facts);
[[nodiscard]] Finding check_emulation(const PathFacts& facts);

// All that apply.
[[nodiscard]] std::vector<Finding> check_path(const PathFacts& facts, const std::string& own_software);

// Whether rank 0's store, or whoever listens there, lets this host in over TCP.
[[nodiscard]] Finding check_peer(const std::string& name, const Result<Duration>& connected);

}  // namespace atp::doctor
