// SPDX-License-Identifier: Apache-2.0
#include "comm/host_formation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>
#include <vector>

#include "comm/formation.h"
#include "comm/option_table.h"
#include "net/random.h"

namespace atp::comm {
namespace {

// Of all places for lanes together: ranks of hosts with many ranks get shorter chunks.
constexpr std::size_t most_lanes_bytes = std::size_t{64} << 20U;
constexpr std::size_t usual_chunk_lanes = 65536;
constexpr std::size_t lane_step = 1024;  // chunks have a multiple of it
constexpr unsigned slots = 4;
constexpr std::string_view yes = "yes";
constexpr std::string_view none = "-";

shm::HostShape shape_of(unsigned ranks) {
    const std::size_t places = std::size_t{slots} * (ranks + 1);
    const std::size_t lanes = most_lanes_bytes / ATP_LANE_BYTES / places / lane_step * lane_step;
    return {.ranks = ranks, .slots = slots, .chunk_lanes = std::clamp(lanes, lane_step, usual_chunk_lanes)};
}

// What a rank tells the others. Only rank 0 listens.
struct HostAnnouncement {
    bool shares = false;
    std::string label;
    std::string socket;
    Secret secret{};
    std::string terms;
};

std::string to_text(const HostAnnouncement& own) {
    const auto word = [](std::string text) {
        std::ranges::replace_if(
            text, [](unsigned char c) { return std::isspace(c) != 0; }, '_');
        return text.empty() ? std::string(none) : text;
    };
    return fmt::format("{} {} {} {} {}\n{}", own.shares ? "on" : "off", word(own.label), word(own.socket),
                       own.secret[0], own.secret[1], own.terms);
}

HostAnnouncement announcement_from(const std::string& text) {
    HostAnnouncement found;
    std::istringstream words(text);
    std::string shares;
    words >> shares >> found.label >> found.socket >> found.secret[0] >> found.secret[1];
    found.shares = shares == "on";
    const std::size_t end = text.find('\n');
    if (end != std::string::npos) found.terms = text.substr(end + 1);
    return found;
}

// Numbers of integers do not depend on how they travel, but a scale that adapts does.
bool may_share(const Options& options) {
    return options.host_level && options.scaling == tensor::Scaling::fixed && options.protocol == nullptr &&
           options.policy == nullptr;
}

std::optional<std::string> objection_to(const std::vector<HostAnnouncement>& all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (!all[rank].shares) return "the host level is off";
        if (all[rank].label != all.front().label) {
            return fmt::format("rank {} is on host {}, rank 0 on host {}", rank, all[rank].label, all.front().label);
        }
    }
    if (all.front().socket == none) return "rank 0 could not open a Unix socket";
    return std::nullopt;
}

// Every rank says whether it succeeded. The first rank that did not gives the reason.
Result<std::optional<std::string>> first_objection(store::Rendezvous& rendezvous, std::string_view name,
                                                   const std::optional<Error>& error, Time deadline) {
    const auto outcomes = rendezvous.all_gather(name, error ? to_string(*error) : std::string(yes), deadline);
    if (!outcomes) return tl::unexpected(outcomes.error());
    for (std::size_t rank = 0; rank < outcomes->size(); ++rank) {
        if ((*outcomes)[rank] != yes) return fmt::format("rank {}: {}", rank, (*outcomes)[rank]);
    }
    return std::nullopt;
}

Error explained(Error error) {
    if (error.operation == Operation::connect && error.reason == Reason::refused) {
        error.text = "rank 0 is on another host, or in another network namespace";
    }
    return error;
}

}  // namespace

Result<std::variant<SharedHost, Apart>> share_memory(store::Rendezvous& rendezvous, const Options& options,
                                                     Time deadline) {
    using Outcome = std::variant<SharedHost, Apart>;
    const auto [prefix, generation, rank, world] = rendezvous.party();
    const auto names = names_of_host_level();
    std::optional<shm::HostLink> link;
    HostAnnouncement own{.shares = may_share(options),
                         .label = options.host_name,
                         .socket = {},
                         .secret = net::random_secret(),
                         .terms = agreed_text(options)};
    if (own.shares && rank == 0 && world > 1) {
        if (auto listening = shm::HostLink::listen()) {
            own.socket = listening->name();
            link = *std::move(listening);
        }
    }
    if (!own.shares) {
        // The others must not wait for this rank.
        if (auto announced = rendezvous.announce(names[0], to_text(own)); !announced) {
            return tl::unexpected(announced.error());
        }
        return Outcome(Apart{"the host level is off"});
    }
    const auto texts = rendezvous.all_gather(names[0], to_text(own), deadline);
    if (!texts) return tl::unexpected(texts.error());
    std::vector<HostAnnouncement> all;
    std::vector<std::string> terms;
    for (const std::string& text : *texts) {
        all.push_back(announcement_from(text));
        terms.push_back(all.back().terms);
    }
    if (auto failure = dissent_about_terms(terms)) return *std::move(failure);
    const shm::HostShape shape = shape_of(world);
    if (world == 1) {
        auto memory = shm::SharedMemory::create(shape.bytes());
        if (!memory) return Outcome(Apart{to_string(memory.error())});
        return Outcome(
            SharedHost{.memory = std::make_unique<shm::HostMemory>(*std::move(memory), shape, 0), .link = {}});
    }
    if (auto why = objection_to(all)) return Outcome(Apart{*std::move(why)});

    const HostAnnouncement& first = all.front();
    std::optional<Error> error;
    if (rank != 0) {
        if (auto connected = shm::HostLink::connect(first.socket, rank, first.secret)) {
            link = *std::move(connected);
        } else {
            error = explained(connected.error());
        }
    }
    auto why = first_objection(rendezvous, names[1], error, deadline);
    if (!why) return tl::unexpected(why.error());
    if (*why) return Outcome(Apart{**std::move(why)});

    auto memory =
        rank == 0 ? link->share(shape, first.secret, deadline) : link->adopt(shape, rank, first.secret, deadline);
    why = first_objection(rendezvous, names[2], memory ? std::nullopt : std::optional(memory.error()), deadline);
    if (!why) return tl::unexpected(why.error());
    if (*why) return Outcome(Apart{**std::move(why)});
    return Outcome(SharedHost{.memory = *std::move(memory), .link = std::move(link)});
}

}  // namespace atp::comm
