// SPDX-License-Identifier: Apache-2.0
#include "xdp/attachment.h"

#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "xdp/filter_attachment.h"
#include "xdp/receive_offload.h"
#include "xdp/shared_maps.h"

namespace atp::xdp {
namespace {

std::uint32_t flags_of(AttachMode mode) { return mode == AttachMode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE; }

// Programs of an interface; none if the kernel does not report them.
bpf_xdp_query_opts programs_at(int index) {
    bpf_xdp_query_opts there{};
    there.sz = sizeof there;
    if (bpf_xdp_query(index, 0, &there) != 0) there.prog_id = there.skb_prog_id = 0;
    return there;
}

bool is_ours(const bpf_xdp_query_opts& there, int program) {
    return there.prog_id != 0 && shares_maps(there.prog_id, program);
}

// The mode of the attached program: it can be replaced or detached in that mode only.
AttachMode mode_of(const bpf_xdp_query_opts& there) {
    return there.skb_prog_id != 0 ? AttachMode::generic : AttachMode::native;
}

}  // namespace

std::string_view to_string(AttachMode mode) { return mode == AttachMode::native ? "native" : "generic"; }

Result<void> Attachment::check(const std::string& interface, int program) {
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    if (index == 0) return fail_with_errno(Operation::open, errno, interface);
    const bpf_xdp_query_opts there = programs_at(index);
    if (there.prog_id == 0 || is_ours(there, program)) return {};
    return fail(Operation::open, Reason::in_use, interface,
                // errors.md, starts, in use: only one XDP program runs on an interface
                "another XDP program is attached to this interface; remove it with `ip link set dev " + interface +
                    " xdp off`");
}

Result<Attachment> Attachment::attach(const std::string& interface, int program) {
    if (auto checked = check(interface, program); !checked) return tl::unexpected(checked.error());
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    const bpf_xdp_query_opts there = programs_at(index);
    AttachMode mode = mode_of(there);
    int code = bpf_xdp_attach(index, program, flags_of(mode), nullptr);
    if (code != 0 && mode == AttachMode::native) {
        mode = AttachMode::generic;
        code = bpf_xdp_attach(index, program, flags_of(mode), nullptr);
    }
    if (code != 0) {
        return fail_with_errno(
            Operation::open, -code, interface,
            // errors.md, starts, failed
            code == -EEXIST ? "the bridge or bond of this interface has an XDP program: remove that program" : "");
    }
    Attachment attached(interface, index, program, mode, there.prog_id != 0);
    attached.began_merging_ = mode == AttachMode::native && merge_received(interface);
    return attached;
}

bool Attachment::is_attached() const { return is_ours(programs_at(index_), program_); }

Result<void> Attachment::detach() const {
    if (!is_attached()) return {};
    bpf_xdp_attach_opts options{};
    options.sz = sizeof options;
    options.old_prog_fd = program_;
    const int code = bpf_xdp_detach(index_, flags_of(mode_) | XDP_FLAGS_REPLACE, &options);
    if (code != 0 && is_attached()) {
        return fail_with_errno(Operation::open, -code, interface_, "the XDP program cannot be detached");
    }
    if (began_merging_) stop_merging_received(interface_);
    return {};
}

void detach_elsewhere(int program, const std::vector<std::string>& interfaces) {
    const std::unique_ptr<struct if_nameindex, decltype(&if_freenameindex)> all(if_nameindex(), if_freenameindex);
    if (all == nullptr) return;
    for (const struct if_nameindex* one = all.get(); one->if_index != 0; ++one) {
        if (std::ranges::find(interfaces, one->if_name) != interfaces.end()) continue;
        const int index = static_cast<int>(one->if_index);
        const bpf_xdp_query_opts there = programs_at(index);
        if (is_ours(there, program)) bpf_xdp_detach(index, flags_of(mode_of(there)), nullptr);
        FilterAttachment::detach_from(index, program, FilterPlace::arriving);
        FilterAttachment::detach_from(index, program, FilterPlace::leaving);
    }
}

}  // namespace atp::xdp
