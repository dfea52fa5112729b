// SPDX-License-Identifier: Apache-2.0
#include "xdp/pinned_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "net/descriptor.h"
#include "xdp/layout.h"

namespace atp::xdp {
namespace {

// Names in a bpffs have no dot.
std::string pin_name(std::string_view map) { return fmt::format("{}_layout{}", map, ATP_XDP_LAYOUT); }

// An earlier start may have left maps of another layout, whose bytes mean something else (H88).
Result<void> check_layout(const std::string& folder, std::string_view map) {
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(map) || name == pin_name(map)) continue;
        return fail(
            Operation::open, Reason::mismatched, entry.path().string(),
            // errors.md, starts, mismatched: how to [clean up by hand](../operate/kernel-switch.md#stop-and-start)
            "a kernel switch of another version left this state: stop that version with SIGTERM, or remove its "
            "program and this file");
    }
    return {};
}

}  // namespace

std::string pin_path(const std::string& folder, const bpf_map* map) {
    return folder + "/" + pin_name(bpf_map__name(map));
}

Result<void> check_pinned(const std::string& folder, const bpf_map* requested) {
    if (auto checked = check_layout(folder, bpf_map__name(requested)); !checked) return checked;
    const std::string path = pin_path(folder, requested);
    const net::Descriptor pinned(bpf_obj_get(path.c_str()));
    bpf_map_info found{};
    std::uint32_t size = sizeof found;
    if (!pinned.valid() || bpf_obj_get_info_by_fd(pinned.number(), &found, &size) != 0) return {};
    if (found.max_entries == bpf_map__max_entries(requested) && found.value_size == bpf_map__value_size(requested))
        return {};
    return fail(
        Operation::open, Reason::mismatched, path,
        // errors.md, starts, mismatched: how to [clean up by hand](../operate/kernel-switch.md#stop-and-start)
        fmt::format("has {} entries of {} bytes, but {} of {} are required: use --memory and --jobs of the switch that "
                    "left it, or remove the file",
                    found.max_entries, found.value_size, bpf_map__max_entries(requested),
                    bpf_map__value_size(requested)));
}

}  // namespace atp::xdp
