// SPDX-License-Identifier: Apache-2.0
#include "xdp/filter_attachment.h"

#include <bpf/libbpf.h>
#include <net/if.h>

#include <cerrno>

#include "xdp/shared_maps.h"

namespace atp::xdp {
namespace {

// Equal at every start, so that a later start finds the filter.
constexpr std::uint32_t handle = 0x415450;
constexpr std::uint32_t priority = 10;
constexpr std::uint32_t priority_of_marker = 11;

bpf_tc_hook hook_of(int index, FilterPlace place) {
    bpf_tc_hook hook{};
    hook.sz = sizeof hook;
    hook.ifindex = index;
    hook.attach_point = place == FilterPlace::arriving ? BPF_TC_INGRESS : BPF_TC_EGRESS;
    return hook;
}

bpf_tc_opts options_of(FilterPlace place) {
    bpf_tc_opts options{};
    options.sz = sizeof options;
    options.handle = handle;
    options.priority = place == FilterPlace::marker ? priority_of_marker : priority;
    return options;
}

// Kernel number of the program at a place; 0: none.
std::uint32_t program_in(const bpf_tc_hook& hook, FilterPlace place) {
    bpf_tc_opts found = options_of(place);
    return bpf_tc_query(&hook, &found) == 0 ? found.prog_id : 0;
}

}  // namespace

Result<FilterAttachment> FilterAttachment::attach(const std::string& interface, int program, FilterPlace place) {
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    if (index == 0) return fail_with_errno(Operation::open, errno, interface);
    bpf_tc_hook hook = hook_of(index, place);
    int code = bpf_tc_hook_create(&hook);
    if (code != 0 && code != -EEXIST) {
        return fail_with_errno(Operation::open, -code, interface, "the clsact qdisc cannot be created");
    }
    const std::uint32_t there = program_in(hook, place);
    if (there != 0 && place != FilterPlace::marker && !shares_maps(there, program)) {
        return fail(Operation::open, Reason::in_use, interface,
                    // errors.md, starts, in use
                    "another tc filter has the same handle and priority: remove it with `tc filter del`");
    }
    bpf_tc_opts options = options_of(place);
    options.prog_fd = program;
    options.flags = there != 0 ? BPF_TC_F_REPLACE : 0;
    code = bpf_tc_attach(&hook, &options);
    if (code != 0) {
        return fail_with_errno(Operation::open, -code, interface,
                               place == FilterPlace::arriving ? "the program cannot be attached to tc ingress"
                                                              : "the program cannot be attached to tc egress");
    }
    return FilterAttachment(index, program, place, there != 0);
}

void FilterAttachment::detach_from(int index, int program, FilterPlace place) {
    const bpf_tc_hook hook = hook_of(index, place);
    const bpf_tc_opts options = options_of(place);
    const std::uint32_t there = program_in(hook, place);
    if (there != 0 && shares_maps(there, program)) bpf_tc_detach(&hook, &options);
}

}  // namespace atp::xdp
