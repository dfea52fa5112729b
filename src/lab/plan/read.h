// SPDX-License-Identifier: Apache-2.0
// Reads a cluster from two TOML files. docs/research/plan.md describes them.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "plan/cluster.h"

namespace atp::plan {

// The error is one line with the file, the position and the accepted values.
[[nodiscard]] tl::expected<Cluster, std::string> read_cluster(const std::string& topology_path,
                                                              const std::string& jobs_path);

// As read_cluster(), from texts. Errors contain the names.
struct Document {
    std::string_view name;
    std::string_view text;
};
[[nodiscard]] tl::expected<Cluster, std::string> parse_cluster(const Document& topology, const Document& jobs);

}  // namespace atp::plan
