// SPDX-License-Identifier: Apache-2.0
#include "comm/host_formation.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <utility>

#include "comm/formation.h"
#include "comm/option_table.h"
#include "net/random.h"
#include "tensor/span_scales.h"

namespace atp::comm {
namespace {

// Of all places for lanes together: ranks of hosts with many ranks get shorter chunks.
constexpr std::size_t most_lanes_bytes = std::size_t{64} << 20U;
constexpr std::size_t usual_chunk_lanes = 65536;
constexpr std::size_t lane_step = 1024;  // chunks have a multiple of it
constexpr std::size_t least_chunk_lanes = 16 * lane_step;
static_assert(least_chunk_lanes >= tensor::span_elements(ATP_DTYPE_INT32), "a chunk has whole spans");
// Chunks on the network take longer than a sum in memory.
constexpr unsigned slots_on_host = 4;
constexpr unsigned slots_over_network = 8;
constexpr std::string_view yes = "yes";
constexpr std::string_view none = "-";

// Chunks are equally long on all hosts.
shm::HostShape shape_of(std::size_t ranks, std::size_t most_ranks, bool over_network) {
    const unsigned slots = over_network ? slots_over_network : slots_on_host;
    const std::size_t places = slots * (most_ranks + 1);
    const std::size_t lanes = most_lanes_bytes / ATP_LANE_BYTES / places / lane_step * lane_step;
    const std::size_t chunk_lanes = std::clamp(lanes, least_chunk_lanes, usual_chunk_lanes);
    // Elements of 16 bits are twice as many.
    return {.ranks = static_cast<unsigned>(ranks),
            .slots = slots,
            .chunk_lanes = chunk_lanes,
            .chunk_spans = 2 * chunk_lanes / tensor::span_elements(ATP_DTYPE_INT8),
            .chunk_cells = 2 * chunk_lanes / tensor::cell_elements(ATP_DTYPE_INT8)};
}

// The start of this kernel, and the network namespace, which bounds the names of abstract sockets.
std::string kernel_of_this_process() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network {};
    if (stat("/proc/self/ns/net", &network) != 0) return boot;
    return fmt::format("{}/{}", boot, network.st_ino);
}

// What a rank tells the others.
struct HostAnnouncement {
    bool shares = false;
    std::string kernel;
    std::string label;
    std::string socket;
    Secret secret{};
    std::string terms;

    [[nodiscard]] bool same_host(const HostAnnouncement& other) const {
        return kernel == other.kernel && label == other.label;
    }
};

std::string to_text(const HostAnnouncement& own) {
    const auto word = [](std::string text) {
        std::ranges::replace_if(
            text, [](unsigned char c) { return std::isspace(c) != 0; }, '_');
        return text.empty() ? std::string(none) : text;
    };
    return fmt::format("{} {} {} {} {} {}\n{}", own.shares ? "on" : "off", word(own.kernel), word(own.label),
                       word(own.socket), own.secret[0], own.secret[1], own.terms);
}

HostAnnouncement announcement_from(const std::string& text) {
    HostAnnouncement found;
    std::istringstream words(text);
    std::string shares;
    words >> shares >> found.kernel >> found.label >> found.socket >> found.secret[0] >> found.secret[1];
    found.shares = shares == "on";
    const std::size_t end = text.find('\n');
    if (end != std::string::npos) found.terms = text.substr(end + 1);
    return found;
}

std::optional<std::string> objection_to(const std::vector<HostAnnouncement>& all) {
    const HostAnnouncement& first = all.front();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (!all[rank].shares) return "the host level is off";
        if (all[rank].label != first.label) {
            return fmt::format("rank {} is on host {}, rank 0 on host {}", rank, all[rank].label, first.label);
        }
        if (all[rank].kernel != first.kernel) {
            return fmt::format("rank {} is on another host than rank 0, or in another network namespace", rank);
        }
    }
    return std::nullopt;
}

// Ranks that seem to be on one host. Hosts follow their first rank.
std::vector<std::vector<std::uint16_t>> group(const std::vector<HostAnnouncement>& all, std::size_t most) {
    std::vector<std::vector<std::uint16_t>> hosts;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const auto found = std::ranges::find_if(hosts, [&](const std::vector<std::uint16_t>& host) {
            return all[host.front()].same_host(all[rank]) && host.size() < most;
        });
        if (found == hosts.end()) {
            hosts.push_back({static_cast<std::uint16_t>(rank)});
        } else {
            found->push_back(static_cast<std::uint16_t>(rank));
        }
    }
    return hosts;
}

std::size_t position_of(const std::vector<std::uint16_t>& ranks, std::uint32_t rank) {
    return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

void find_own(Hosts& hosts, std::uint32_t rank) {
    const auto own =
        std::ranges::find_if(hosts.ranks, [&](const auto& ranks) { return position_of(ranks, rank) != ranks.size(); });
    hosts.own = static_cast<std::size_t>(own - hosts.ranks.begin());
}

// Every rank says whether it succeeded. The ranks of a host where one did not are alone from now on.
Result<void> part_ranks(store::Rendezvous& rendezvous, std::string_view name, const std::optional<Error>& error,
                        Hosts& hosts, Time deadline) {
    const auto outcomes = rendezvous.all_gather(name, error ? to_string(*error) : std::string(yes), deadline);
    if (!outcomes) return tl::unexpected(outcomes.error());
    std::vector<std::vector<std::uint16_t>> parted;
    for (std::vector<std::uint16_t>& ranks : hosts.ranks) {
        const auto failed = std::ranges::find_if(ranks, [&](std::uint16_t rank) { return (*outcomes)[rank] != yes; });
        if (failed == ranks.end()) {
            parted.push_back(std::move(ranks));
            continue;
        }
        if (hosts.why_apart.empty()) hosts.why_apart = fmt::format("rank {}: {}", *failed, (*outcomes)[*failed]);
        for (const std::uint16_t rank : ranks) parted.push_back({rank});
    }
    std::ranges::sort(parted, {}, [](const auto& ranks) { return ranks.front(); });
    hosts.ranks = std::move(parted);
    find_own(hosts, rendezvous.party().rank);
    return {};
}

Error explained(Error error) {
    if (error.operation == Operation::connect && error.reason == Reason::refused) {
        error.text = "the first rank of its host is on another host, or in another network namespace";
    }
    return error;
}

unsigned index_of(const Hosts& hosts, std::uint32_t rank) {
    return static_cast<unsigned>(position_of(hosts.own_ranks(), rank));
}

// Replaces `link` by one to the rank that speaks for the host.
std::optional<Error> meet_speaker(const Hosts& hosts, std::uint32_t rank, const HostAnnouncement& speaker,
                                  std::optional<shm::HostLink>& link) {
    if (hosts.own_ranks().size() == 1) return std::nullopt;
    if (speaker.socket == none) {
        return Error{.operation = Operation::connect, .text = "the first rank of its host has no Unix socket"};
    }
    const unsigned index = index_of(hosts, rank);
    if (index == 0) return std::nullopt;
    auto connected = shm::HostLink::connect(speaker.socket, index, speaker.secret);
    if (!connected) return explained(connected.error());
    link = *std::move(connected);
    return std::nullopt;
}

// Fills in `hosts.shared`, unless the rank is alone in a job on several hosts.
std::optional<Error> share(Hosts& hosts, std::uint32_t rank, const Secret& secret, std::optional<shm::HostLink> link,
                           Time deadline) {
    const std::size_t most = std::ranges::max(hosts.ranks, {}, &std::vector<std::uint16_t>::size).size();
    const shm::HostShape shape = shape_of(hosts.own_ranks().size(), most, hosts.ranks.size() > 1);
    hosts.chunk_lanes = shape.chunk_lanes;
    if (shape.ranks == 1) {
        if (hosts.ranks.size() > 1) return std::nullopt;
        auto alone = shm::SharedMemory::create(shape.bytes());
        if (!alone) return alone.error();
        hosts.shared.memory = std::make_unique<shm::HostMemory>(*std::move(alone), shape, 0);
        return std::nullopt;
    }
    const unsigned index = index_of(hosts, rank);
    auto memory = index == 0 ? link->share(shape, secret, deadline) : link->adopt(shape, index, secret, deadline);
    if (!memory) return memory.error();
    hosts.shared = {.memory = *std::move(memory), .link = std::move(link)};
    return std::nullopt;
}

struct Announced {
    std::vector<HostAnnouncement> all;
    std::optional<shm::HostLink> link;  // where this rank listens
};

Result<Announced> announce(store::Rendezvous& rendezvous, std::string_view name, const Options& options,
                           bool all_or_none, Time deadline) {
    Announced announced;
    HostAnnouncement own{.shares = may_share(options),
                         .kernel = kernel_of_this_process(),
                         .label = options.host_name,
                         .socket = {},
                         .secret = net::random_secret(),
                         .terms = agreed_text(options)};
    const std::uint32_t rank = rendezvous.party().rank;
    const std::uint32_t world = rendezvous.party().world;
    if (own.shares && world > 1 && (rank == 0 || !all_or_none)) {
        if (auto listening = shm::HostLink::listen()) {
            own.socket = listening->name();
            announced.link = *std::move(listening);
        }
    }
    if (!own.shares) {
        // The others must not wait for this rank.
        if (auto left = rendezvous.announce(name, to_text(own)); !left) return tl::unexpected(left.error());
        return announced;
    }
    const auto texts = rendezvous.all_gather(name, to_text(own), deadline);
    if (!texts) return tl::unexpected(texts.error());
    std::vector<std::string> terms;
    for (const std::string& text : *texts) {
        announced.all.push_back(announcement_from(text));
        terms.push_back(announced.all.back().terms);
    }
    if (auto failure = dissent_about_terms(terms)) return *std::move(failure);
    return announced;
}

}  // namespace

bool may_share(const Options& options) { return options.host_level; }

Result<Hosts> find_hosts(store::Rendezvous& rendezvous, std::span<const std::string_view> names, const Options& options,
                         bool all_or_none, Time deadline) {
    const std::uint32_t rank = rendezvous.party().rank;
    const std::uint32_t world = rendezvous.party().world;
    auto announced = announce(rendezvous, names[0], options, all_or_none, deadline);
    if (!announced) return tl::unexpected(announced.error());
    const std::vector<HostAnnouncement>& all = announced->all;
    std::optional<shm::HostLink>& link = announced->link;
    Hosts hosts;
    if (all.empty()) {
        hosts.why_apart = "the host level is off";
        return hosts;
    }
    if (all_or_none && world > 1) {
        if (auto why = objection_to(all)) {
            hosts.why_apart = *std::move(why);
            return hosts;
        }
    }
    // Over the network, the field `part` counts the ranks of a host.
    hosts.ranks = group(all, all_or_none ? world : ATP_PART_RANK_MASK);
    find_own(hosts, rank);

    std::optional<Error> error = meet_speaker(hosts, rank, all[hosts.own_ranks().front()], link);
    if (world > 1) {
        if (auto done = part_ranks(rendezvous, names[1], error, hosts, deadline); !done) {
            return tl::unexpected(done.error());
        }
    }
    error = share(hosts, rank, all[hosts.own_ranks().front()].secret, std::move(link), deadline);
    if (world == 1) {
        if (error) hosts.why_apart = to_string(*error);
        return hosts;
    }
    if (auto done = part_ranks(rendezvous, names[2], error, hosts, deadline); !done) {
        return tl::unexpected(done.error());
    }
    if (hosts.own_ranks().size() == 1) hosts.shared = {};
    return hosts;
}

}  // namespace atp::comm
