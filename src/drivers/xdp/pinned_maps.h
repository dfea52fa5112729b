// SPDX-License-Identifier: Apache-2.0
// The maps that a kernel switch keeps in a folder of a bpffs.
#pragma once

#include <string>

#include "base/result.h"

struct bpf_map;

namespace atp::xdp {

// Where the folder has the map.
[[nodiscard]] std::string pin_path(const std::string& folder, const bpf_map* map);
// Fails if an earlier start left such a map of another layout or size.
[[nodiscard]] Result<void> check_pinned(const std::string& folder, const bpf_map* requested);

}  // namespace atp::xdp
