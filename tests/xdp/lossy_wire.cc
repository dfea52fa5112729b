// SPDX-License-Identifier: Apache-2.0
// Drops a share of the packets that arrive at some interfaces, until its input ends. Then prints one line per type of
// packet: the number of packets that arrived, and the number of packets that it dropped.
// usage: lossy_wire SHARE SEED INTERFACE...
#include <bpf/libbpf.h>
#include <net/if.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "lossy_wire_program.skel.h"
#include "wire/packet.h"

namespace {

struct Detach {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
struct Destroy {
    void operator()(lossy_wire_program* program) const { lossy_wire_program__destroy(program); }
};

int failed(const std::string& what) {
    std::fprintf(stderr, "lossy_wire: %s: %s\n", what.c_str(), std::strerror(errno));
    return 1;
}

void print_counts(const lossy_wire_program& program) {
    for (std::uint8_t type = 1; type <= ATP_TYPE_LAST; ++type) {
        std::cout << atp::wire::type_to_string(type) << ' ' << program.bss->atp_met[type] << ' '
                  << program.bss->atp_lost[type] << '\n';
    }
}

}  // namespace

int main(int count, char** words) {
    const std::vector<std::string> arguments(words + 1, words + count);
    if (arguments.size() < 3) return failed("usage: lossy_wire SHARE SEED INTERFACE...");
    const std::unique_ptr<lossy_wire_program, Destroy> program(lossy_wire_program__open());
    if (program == nullptr) return failed("open");
    program->rodata->atp_loss_of_all = static_cast<std::uint32_t>(std::ldexp(std::stod(arguments[0]), 32));
    program->rodata->atp_seed = static_cast<std::uint32_t>(std::stoul(arguments[1]));
    if (lossy_wire_program__load(program.get()) != 0) return failed("load");

    std::vector<std::unique_ptr<bpf_link, Detach>> links;  // the destructor detaches them
    for (std::size_t i = 2; i < arguments.size(); ++i) {
        const int interface = static_cast<int>(if_nametoindex(arguments[i].c_str()));
        links.emplace_back(bpf_program__attach_xdp(program->progs.atp_lossy_wire, interface));
        if (links.back() == nullptr) return failed(arguments[i]);
    }
    std::cout << "ready\n" << std::flush;
    std::string input;
    while (std::getline(std::cin, input)) {
    }
    print_counts(*program);
    return 0;
}
