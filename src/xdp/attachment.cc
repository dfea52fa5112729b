// SPDX-License-Identifier: Apache-2.0
#include "xdp/attachment.h"

#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <cerrno>

#include "xdp/receive_offload.h"
#include "xdp/shared_maps.h"

namespace atp::xdp {
namespace {

std::uint32_t flags_of(Mode mode) { return mode == Mode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE; }

}  // namespace

std::string_view to_string(Mode mode) { return mode == Mode::native ? "native" : "generic"; }

net::Result<Attachment> Attachment::attach(const std::string& interface, int program) {
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    if (index == 0) return net::fail_with_errno(net::Operation::open, errno, interface);
    bpf_xdp_query_opts there{};
    there.sz = sizeof there;
    const bool asked = bpf_xdp_query(index, 0, &there) == 0;
    if (asked && there.prog_id != 0 && !shares_maps(there.prog_id, program)) {
        return net::fail(net::Operation::open, net::Reason::in_use, interface,
                         "an XDP program of somebody else's is attached there; `ip link set dev " + interface +
                             " xdp off` takes it off");
    }
    // One that is there in one mode is replaced in that mode alone.
    Mode mode = asked && there.skb_prog_id != 0 ? Mode::generic : Mode::native;
    int code = bpf_xdp_attach(index, program, flags_of(mode), nullptr);
    if (code != 0 && mode == Mode::native) {
        mode = Mode::generic;
        code = bpf_xdp_attach(index, program, flags_of(mode), nullptr);
    }
    if (code != 0) {
        return net::fail_with_errno(net::Operation::open, -code, interface,
                                    code == -EEXIST ? "a device above it, its bridge perhaps, has a program" : "");
    }
    return Attachment(interface, index, program, mode, mode == Mode::native && merge_received(interface));
}

void Attachment::detach() const {
    bpf_xdp_attach_opts options{};
    options.sz = sizeof options;
    options.old_prog_fd = program_;
    bpf_xdp_detach(index_, flags_of(mode_) | XDP_FLAGS_REPLACE, &options);
    if (began_merging_) stop_merging_received(interface_);
}

}  // namespace atp::xdp
