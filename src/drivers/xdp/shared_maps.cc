// SPDX-License-Identifier: Apache-2.0
#include "xdp/shared_maps.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <vector>

#include "net/descriptor.h"

namespace atp::xdp {
namespace {

constexpr std::uint32_t most_maps = 64;  // the kernel's limit for one program

std::vector<std::uint32_t> maps_of(int program) {
    std::vector<std::uint32_t> maps(most_maps);
    bpf_prog_info info{};
    std::uint32_t size = sizeof info;
    info.nr_map_ids = most_maps;
    info.map_ids = reinterpret_cast<std::uintptr_t>(maps.data());
    if (bpf_obj_get_info_by_fd(program, &info, &size) != 0) return {};
    maps.resize(std::min(info.nr_map_ids, most_maps));
    return maps;
}

}  // namespace

// Asking about another program needs CAP_SYS_ADMIN, but not about itself.
bool shares_maps(std::uint32_t there, int program) {
    bpf_prog_info own{};
    std::uint32_t size = sizeof own;
    if (bpf_obj_get_info_by_fd(program, &own, &size) == 0 && own.id == there) return true;
    const net::Descriptor opened(bpf_prog_get_fd_by_id(there));
    const std::vector<std::uint32_t> its = maps_of(opened.number());
    const std::vector<std::uint32_t> ours = maps_of(program);
    return std::ranges::find_first_of(its, ours) != its.end();
}

}  // namespace atp::xdp
