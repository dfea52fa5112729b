// SPDX-License-Identifier: Apache-2.0
// Sets, prints and removes the faults of the frames that leave an interface of this network namespace. The faults stay
// until they are removed, or until the interface disappears; no process needs to stay.
#include "link_fault.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <net/if.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "link_fault_program.skel.h"
#include "net/descriptor.h"

namespace {

using atp::net::Descriptor;

constexpr int exit_failed = 1;
constexpr int exit_misused = 2;
constexpr int exit_unavailable = 77;

// Behind the filter of the kernel's switch, which has priority 10: a frame is lost after it has left the host.
constexpr std::uint32_t handle = 0x464C54;
constexpr std::uint32_t priority = 20;

constexpr std::uint32_t most_maps = 64;  // the kernel's limit for one program
constexpr std::uint64_t most_queue_bytes = 1'000'000'000;
constexpr std::uint64_t most_bps = 1'000'000'000'000;

constexpr std::string_view usage =
    "Usage: link_fault set INTERFACE [FAULT...]\n"
    "       link_fault counts INTERFACE\n"
    "       link_fault clear INTERFACE\n"
    "Set faults of the frames that leave an interface, print their counts as JSON, or remove the faults. `set` "
    "replaces\n"
    "the faults of an earlier `set` and keeps the counts. Needs root.\n"
    "  cut               No frame passes.\n"
    "  longest=BYTES     IP packets longer than this are lost, 1 to 65535.\n"
    "  loss=SHARE        Share of the frames that are lost, from 0 to 1.\n"
    "  mark=BPS/BYTES    Set CE in ECN-capable packets while a virtual queue, which drains at BPS bit/s (1 to 10^12), "
    "is\n"
    "                    longer than BYTES (1 to 10^9).\n"
    "  duplicates=SHARE  Share of the frames that are sent twice, from 0 to 1.\n"
    "  delays=SHARE      Share of the frames, in groups of 4, that wait in class 4154:2 of the qdisc htb, which must "
    "exist,\n"
    "                    from 0 to 1. Later frames overtake them.\n"
    "  seed=N            Seed of the choice of lost, duplicated and delayed frames, 0 to 4294967295. [1]\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 bad arguments, 77 the kernel or the user's rights do not allow it.\n";

struct Detach {
    void operator()(link_fault_program* program) const { link_fault_program__destroy(program); }
};

int failed(std::string_view what, int code) {
    fmt::print(stderr, "link_fault: {}: {}\n", what, std::strerror(code));  // NOLINT(concurrency-mt-unsafe): one thread
    return code == EPERM || code == EOPNOTSUPP ? exit_unavailable : exit_failed;
}

int misused(const std::string& text) {
    fmt::print(stderr, "link_fault: {}\n{}", text, usage);
    return exit_misused;
}

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

// A map of the program that an earlier process attached to the interface; invalid if there is none.
Descriptor map_of(const bpf_tc_hook& hook, std::string_view name) {
    bpf_tc_opts found = our_place();
    if (bpf_tc_query(&hook, &found) != 0) return {};
    const Descriptor program(bpf_prog_get_fd_by_id(found.prog_id));
    std::array<std::uint32_t, most_maps> ids{};
    bpf_prog_info info{};
    std::uint32_t size = sizeof info;
    info.nr_map_ids = most_maps;
    info.map_ids = reinterpret_cast<std::uintptr_t>(ids.data());
    if (!program.valid() || bpf_obj_get_info_by_fd(program.number(), &info, &size) != 0) return {};
    for (std::uint32_t i = 0; i < info.nr_map_ids && i < most_maps; ++i) {
        Descriptor map(bpf_map_get_fd_by_id(ids[i]));
        bpf_map_info description{};
        size = sizeof description;
        if (map.valid() && bpf_obj_get_info_by_fd(map.number(), &description, &size) == 0 && name == description.name) {
            return map;
        }
    }
    return {};
}

bool parse_mark(std::string_view text, atp_link_fault& fault) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return false;
    const auto bps = atp::parse_whole(text.substr(0, slash), 1, most_bps);
    const auto bytes = atp::parse_whole(text.substr(slash + 1), 1, most_queue_bytes);
    if (!bps || !bytes) return false;
    fault.mark_bps = *bps;
    fault.mark_bytes = *bytes;
    return true;
}

bool parse_share(std::string_view text, std::uint64_t& share) {
    const auto parsed = atp::parse_real(text, 0, 1);
    if (parsed) share = static_cast<std::uint64_t>(std::llround(*parsed * static_cast<double>(ATP_LINK_FAULT_ONE)));
    return parsed.has_value();
}

bool parse_number(std::string_view text, std::uint64_t least, std::uint64_t most, std::uint32_t& number) {
    const auto parsed = atp::parse_whole(text, least, most);
    if (parsed) number = static_cast<std::uint32_t>(*parsed);
    return parsed.has_value();
}

bool parse_fault(std::string_view word, atp_link_fault& fault) {
    if (word == "cut") {
        fault.cut = 1;
        return true;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (name == "longest") return parse_number(value, 1, UINT16_MAX, fault.longest);
    if (name == "loss") return parse_share(value, fault.loss);
    if (name == "mark") return parse_mark(value, fault);
    if (name == "duplicates") return parse_share(value, fault.duplicates);
    if (name == "delays") return parse_share(value, fault.delays);
    return name == "seed" && parse_number(value, 0, UINT32_MAX, fault.seed);
}

int write_fault(const Descriptor& map, const atp_link_fault& fault) {
    const std::uint32_t zero = 0;
    if (bpf_map_update_elem(map.number(), &zero, &fault, BPF_ANY) != 0) return failed("the faults of the map", errno);
    return 0;
}

int set(const bpf_tc_hook& hook, const atp_link_fault& fault) {
    if (const Descriptor map = map_of(hook, "link_fault"); map.valid()) return write_fault(map, fault);
    const std::unique_ptr<link_fault_program, Detach> program(link_fault_program__open());
    if (program == nullptr) return failed("the program", errno);
    if (const int code = link_fault_program__load(program.get()); code != 0) {
        return failed("the kernel refuses the program", -code);
    }
    const std::uint32_t zero = 0;
    const int map = bpf_map__fd(program->maps.link_fault);
    if (bpf_map_update_elem(map, &zero, &fault, BPF_ANY) != 0) return failed("the faults of the map", errno);
    bpf_tc_hook created = hook;
    if (const int code = bpf_tc_hook_create(&created); code != 0 && code != -EEXIST) {
        return failed("the clsact qdisc", -code);
    }
    bpf_tc_opts place = our_place();
    place.prog_fd = bpf_program__fd(program->progs.atp_link_fault);
    if (const int code = bpf_tc_attach(&hook, &place); code != 0) return failed("the filter at tc egress", -code);
    return 0;
}

int print_counts(const bpf_tc_hook& hook) {
    const Descriptor map = map_of(hook, "link_counts");
    const std::uint32_t zero = 0;
    atp_link_counts counts{};
    if (!map.valid()) return failed("the interface has no faults", ENOENT);
    if (bpf_map_lookup_elem(map.number(), &zero, &counts) != 0) return failed("the counts", errno);
    fmt::print(
        "{{\"frames\": {}, \"bytes\": {}, \"merged\": {}, \"cut\": {}, \"too_long\": {}, \"lost\": {}, \"marked\": {}, "
        "\"duplicated\": {}, \"delayed\": {}}}\n",
        counts.frames, counts.bytes, counts.merged, counts.cut, counts.too_long, counts.lost, counts.marked,
        counts.duplicated, counts.delayed);
    return 0;
}

int clear(const bpf_tc_hook& hook) {
    if (!map_of(hook, "link_fault").valid()) return 0;
    const bpf_tc_opts place = our_place();
    const int code = bpf_tc_detach(&hook, &place);
    return code == 0 ? 0 : failed("the filter at tc egress", -code);
}

}  // namespace

int main(int count, char** words) {
    const std::vector<std::string_view> arguments(words + 1, words + count);
    if (arguments.size() == 1 && arguments[0] == "--help") {
        fmt::print("{}", usage);
        return 0;
    }
    if (arguments.size() < 2) return misused("an action and an interface are required");
    const int index = static_cast<int>(if_nametoindex(words[2]));
    const bpf_tc_hook hook = egress_of(index);
    if (index == 0) return failed(arguments[1], errno);
    // A filter or qdisc that is not there is no error here; libbpf would print the kernel's words about it.
    libbpf_set_print(nullptr);
    if (arguments[0] == "set") {
        atp_link_fault fault{};
        fault.seed = 1;
        for (std::size_t i = 2; i < arguments.size(); ++i) {
            if (!parse_fault(arguments[i], fault)) return misused(fmt::format("'{}' is not accepted", arguments[i]));
        }
        return set(hook, fault);
    }
    if (arguments.size() > 2) return misused(fmt::format("'{}' is not accepted", arguments[2]));
    if (arguments[0] == "counts") return print_counts(hook);
    if (arguments[0] == "clear") return clear(hook);
    return misused(fmt::format("action '{}' is not accepted", arguments[0]));
}
