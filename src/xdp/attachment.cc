// SPDX-License-Identifier: Apache-2.0
#include "xdp/attachment.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <cerrno>
#include <string_view>

#include "net/descriptor.h"

namespace atp::xdp {
namespace {

constexpr std::string_view own_name = "atp_switch";

std::uint32_t flags_of(Mode mode) { return mode == Mode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE; }

bool is_ours(std::uint32_t program) {
    const net::Descriptor opened(bpf_prog_get_fd_by_id(program));
    bpf_prog_info info{};
    std::uint32_t size = sizeof info;
    return opened.valid() && bpf_obj_get_info_by_fd(opened.number(), &info, &size) == 0 && own_name == info.name;
}

}  // namespace

std::string_view to_string(Mode mode) { return mode == Mode::native ? "native" : "generic"; }

net::Result<Attachment> Attachment::attach(const std::string& interface, int program) {
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    if (index == 0) return net::fail_with_errno(net::Operation::open, errno, interface);
    std::uint32_t there = 0;
    const int asked = bpf_xdp_query_id(index, 0, &there);
    if (asked == 0 && there != 0 && !is_ours(there)) {
        return net::fail(net::Operation::open, net::Reason::in_use, interface,
                         "an XDP program of somebody else's is attached there");
    }
    Mode mode = Mode::native;
    int code = bpf_xdp_attach(index, program, flags_of(mode), nullptr);
    if (code == -EOPNOTSUPP || code == -ERANGE) {  // no such driver, or an MTU that it does not take with XDP
        mode = Mode::generic;
        code = bpf_xdp_attach(index, program, flags_of(mode), nullptr);
    }
    if (code != 0) return net::fail_with_errno(net::Operation::open, -code, interface);
    return Attachment(interface, index, program, mode);
}

void Attachment::detach() const {
    bpf_xdp_attach_opts options{};
    options.sz = sizeof options;
    options.old_prog_fd = program_;
    bpf_xdp_detach(index_, flags_of(mode_) | XDP_FLAGS_REPLACE, &options);
}

}  // namespace atp::xdp
