// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_facts.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "net/affinity.h"
#include "net/clock.h"
#include "net/udp_socket.h"

namespace atp::doctor {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::uint64_t number_in(const fs::path& path) {
    std::ifstream file(path);
    std::uint64_t number = 0;
    file >> number;
    return number;
}

// Format: "Udp: name name ..." followed by "Udp: count count ...".
std::uint64_t snmp_count(const fs::path& path, std::string_view protocol, std::string_view name) {
    std::ifstream file(path);
    std::string names;
    std::string counts;
    while (std::getline(file, names)) {
        if (!names.starts_with(protocol) || !std::getline(file, counts)) continue;
        std::istringstream name_stream(names);
        std::istringstream count_stream(counts);
        std::string word;
        std::string count;
        while (name_stream >> word && count_stream >> count) {
            if (word == name) return std::stoull(count);
        }
    }
    return 0;
}

// Format: one line per core, in hexadecimal: processed, dropped, and more.
void read_backlog(const fs::path& path, KernelDrops& drops) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::uint64_t processed = 0;
        std::uint64_t dropped = 0;
        if (words >> std::hex >> processed >> dropped) {
            drops.backlog_processed += processed;
            drops.backlog_dropped += dropped;
        }
    }
}

std::vector<std::string> read_governors(const fs::path& cores) {
    std::vector<std::string> governors;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(cores, ignored)) {
        std::string governor = first_line(entry.path() / "cpufreq/scaling_governor");
        if (!governor.empty()) governors.push_back(std::move(governor));
    }
    std::ranges::sort(governors);
    governors.erase(std::unique(governors.begin(), governors.end()), governors.end());
    return governors;
}

// Cores' time that one control group grants; nullopt: no limit.
std::optional<double> limit_in(const fs::path& group) {
    std::ifstream unified(group / "cpu.max");
    std::string quota;
    double period = 0;
    if (unified >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
    double old_quota = 0;
    std::ifstream old(group / "cpu.cfs_quota_us");
    const double old_period = static_cast<double>(number_in(group / "cpu.cfs_period_us"));
    if (old >> old_quota && old_quota > 0 && old_period > 0) return old_quota / old_period;
    return std::nullopt;
}

// The lowest limit from the process's own group up to the root. In a container, the path of the process's group may not
// exist: the mounted group is then its own.
std::optional<double> read_core_limit(const fs::path& root) {
    std::optional<double> least;
    std::ifstream groups(root / "proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line)) {
        const std::size_t controllers = line.find(':') + 1;
        const std::size_t path = line.find(':', controllers) + 1;
        if (controllers == 0 || path == 0) continue;
        const std::string_view names = std::string_view(line).substr(controllers, path - 1 - controllers);
        const bool unified = names.empty();
        if (!unified && names != "cpu" && names.find("cpu,") == std::string_view::npos) continue;
        const fs::path mount = root / (unified ? "sys/fs/cgroup" : "sys/fs/cgroup/cpu");
        for (fs::path at = fs::path(line.substr(path)).relative_path();; at = at.parent_path()) {
            const auto limit = limit_in(mount / at);
            if (limit && (!least || *limit < *least)) least = limit;
            if (at.empty()) break;
        }
    }
    return least;
}

struct FreeAddressList {
    void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

std::vector<Interface> read_interfaces() {
    std::vector<Interface> interfaces;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return interfaces;
    const std::unique_ptr<ifaddrs, FreeAddressList> owner(list);
    for (const ifaddrs* next = list; next != nullptr; next = next->ifa_next) {
        const bool known = std::ranges::find(interfaces, next->ifa_name, &Interface::name) != interfaces.end();
        if ((next->ifa_flags & IFF_UP) == 0 || known) continue;
        interfaces.push_back({.name = next->ifa_name,
                              .loopback = (next->ifa_flags & IFF_LOOPBACK) != 0,
                              .multicast = (next->ifa_flags & IFF_MULTICAST) != 0});
    }
    return interfaces;
}

Duration clock_cost() {
    constexpr int readings = 1000;
    const Time begin = net::now();
    Time at = begin;
    for (int i = 0; i < readings; ++i) at = net::now();
    return (at - begin) / readings;
}

// Some kernels and devices reveal only in use which features they lack.
void exchange_with_itself(net::UdpSocket& socket) {
    constexpr std::size_t packets = 4;
    constexpr std::size_t packet_bytes = 1000;
    for (std::size_t i = 0; i < packets; ++i) {
        const std::span<std::byte> room = socket.reserve(packet_bytes);
        if (room.empty()) return;
        std::memset(room.data(), 0, packet_bytes);
        socket.commit(packet_bytes, socket.local());
    }
    socket.flush();
    pollfd waiting{.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
    std::array<wire::Datagram, packets> datagrams;
    if (::poll(&waiting, 1, 100) > 0) static_cast<void>(socket.receive(datagrams));
}

void read_socket(HostFacts& facts) {
    const net::UdpConfig config{.local = wire::Address::loopback(wire::Family::ipv4, 0),
                                .receive_buffer_bytes = requested_buffer_bytes,
                                .send_buffer_bytes = requested_buffer_bytes};
    auto socket = net::UdpSocket::open(config);
    if (!socket) {
        facts.socket_error = to_string(socket.error());
        return;
    }
    exchange_with_itself(**socket);
    facts.socket = (*socket)->report();
}

}  // namespace

KernelDrops read_kernel_drops(const fs::path& root) {
    KernelDrops drops;
    const fs::path snmp = root / "proc/net/snmp";
    drops.udp_received = snmp_count(snmp, "Udp:", "InDatagrams");
    drops.udp_receive_buffer_full = snmp_count(snmp, "Udp:", "RcvbufErrors");
    drops.udp_send_buffer_full = snmp_count(snmp, "Udp:", "SndbufErrors");
    read_backlog(root / "proc/net/softnet_stat", drops);
    return drops;
}

HostFacts read_host_files(const fs::path& root) {
    HostFacts facts;
    facts.kernel_release = first_line(root / "proc/sys/kernel/osrelease");
    facts.clock_source = first_line(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
    facts.governors = read_governors(root / "sys/devices/system/cpu");
    facts.core_limit = read_core_limit(root);
    facts.receive_buffer_limit = number_in(root / "proc/sys/net/core/rmem_max");
    facts.send_buffer_limit = number_in(root / "proc/sys/net/core/wmem_max");
    facts.drops = read_kernel_drops(root);
    return facts;
}

HostFacts read_host() {
    HostFacts facts = read_host_files("/");
    facts.clock_reading = clock_cost();
    facts.interfaces = read_interfaces();
    if (const auto cores = net::allowed_cores()) facts.cores = cores->size();
    read_socket(facts);
    return facts;
}

}  // namespace atp::doctor
