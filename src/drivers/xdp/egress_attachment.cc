// SPDX-License-Identifier: Apache-2.0
#include "xdp/egress_attachment.h"

#include <bpf/libbpf.h>
#include <net/if.h>

#include <cerrno>

#include "xdp/shared_maps.h"

namespace atp::xdp {
namespace {

// Equal at every start, so that a later start finds the filter.
constexpr std::uint32_t handle = 0x415450;
constexpr std::uint32_t priority = 10;

bpf_tc_hook egress_of(int index) {
    bpf_tc_hook hook{};
    hook.sz = sizeof hook;
    hook.ifindex = index;
    hook.attach_point = BPF_TC_EGRESS;
    return hook;
}

bpf_tc_opts our_place() {
    bpf_tc_opts place{};
    place.sz = sizeof place;
    place.handle = handle;
    place.priority = priority;
    return place;
}

// Kernel number of the program at our handle and priority; 0: none.
std::uint32_t program_in(const bpf_tc_hook& hook) {
    bpf_tc_opts found = our_place();
    return bpf_tc_query(&hook, &found) == 0 ? found.prog_id : 0;
}

}  // namespace

Result<EgressAttachment> EgressAttachment::attach(const std::string& interface, int program) {
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    if (index == 0) return fail_with_errno(Operation::open, errno, interface);
    bpf_tc_hook hook = egress_of(index);
    int code = bpf_tc_hook_create(&hook);
    if (code != 0 && code != -EEXIST) {
        return fail_with_errno(Operation::open, -code, interface, "the clsact qdisc cannot be created");
    }
    const std::uint32_t there = program_in(hook);
    if (there != 0 && !shares_maps(there, program)) {
        return fail(Operation::open, Reason::in_use, interface,
                    // errors.md, starts, in use
                    "another tc egress filter has the same handle and priority: remove it with `tc filter del`");
    }
    bpf_tc_opts place = our_place();
    place.prog_fd = program;
    place.flags = there != 0 ? BPF_TC_F_REPLACE : 0;
    code = bpf_tc_attach(&hook, &place);
    if (code != 0)
        return fail_with_errno(Operation::open, -code, interface, "the program cannot be attached to tc egress");
    return EgressAttachment(index, program, there != 0);
}

void EgressAttachment::detach_from(int index, int program) {
    const bpf_tc_hook hook = egress_of(index);
    const bpf_tc_opts place = our_place();
    const std::uint32_t there = program_in(hook);
    if (there != 0 && shares_maps(there, program)) bpf_tc_detach(&hook, &place);
}

}  // namespace atp::xdp
