// SPDX-License-Identifier: Apache-2.0
// Clusters from two TOML files, which docs/lab/plan.md describes.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "plan/cluster.h"

namespace atp::plan {

// The error is a line for whoever wrote the file: where it is wrong, and what is accepted there.
[[nodiscard]] tl::expected<Cluster, std::string> read_cluster(const std::string& topology_path,
                                                              const std::string& jobs_path);

// The same of texts; the names stand in errors.
struct Document {
    std::string_view name;
    std::string_view text;
};
[[nodiscard]] tl::expected<Cluster, std::string> parse_cluster(const Document& topology, const Document& jobs);

}  // namespace atp::plan
