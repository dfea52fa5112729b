// SPDX-License-Identifier: Apache-2.0
#include "comm/host_formation.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "comm/option_table.h"
#include "control/fact_round.h"
#include "control/formation_rounds.h"
#include "net/random.h"
#include "tensor/span_scales.h"

namespace atp::comm {
namespace {

static_assert(control::least_chunk_lanes >= tensor::span_elements(ATP_DTYPE_INT32), "a chunk has whole spans");
shm::HostShape shape_of(const control::HostMemoryPlan& plan, std::size_t ranks) {
    // Elements of 16 bits are twice as many.
    return {.ranks = static_cast<unsigned>(ranks),
            .slots = plan.slots,
            .chunk_lanes = plan.chunk_lanes,
            .chunk_spans = 2 * plan.chunk_lanes / tensor::span_elements(ATP_DTYPE_INT8),
            .chunk_cells = 2 * plan.chunk_lanes / tensor::cell_elements(ATP_DTYPE_INT8)};
}

// The start of this kernel, and the network namespace, which bounds the names of abstract sockets.
std::string kernel_of_this_process() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network {};
    if (stat("/proc/self/ns/net", &network) != 0) return boot;
    return fmt::format("{}/{}", boot, network.st_ino);
}

// What ranks of a host show to its first rank: derived from their key, otherwise published by it.
Secret secret_of(const store::Rendezvous& rendezvous, const wire::RankFacts& facts, std::uint32_t rank) {
    return rendezvous.secret("memory", rank).value_or(Secret{facts.secret_low, facts.secret_high});
}

// `listener`: where other ranks of the host find this one.
wire::RankFacts own_facts(const Options& options, const store::Rendezvous& rendezvous,
                          std::optional<shm::HostLink>& listener) {
    const std::uint32_t world = rendezvous.party().world;
    const Secret secret = rendezvous.has_key() ? Secret{} : net::random_secret();
    wire::RankFacts own{.job = options.job.value_or(static_cast<std::uint32_t>(net::random_bits())),
                        .first_group = static_cast<std::uint32_t>(net::random_bits()),
                        .shares = may_share(options),
                        .starts_switch = options.starts_switch,
                        .kernel = kernel_of_this_process(),
                        .host_name = options.host_name,
                        .socket = {},
                        .secret_low = secret[0],
                        .secret_high = secret[1],
                        .switch_address = options.switch_address,
                        .terms = agreed_text(options)};
    while (own.token == 0) own.token = net::random_bits();
    if (!own.shares || world == 1) return own;
    if (auto listening = shm::HostLink::listen()) {
        own.socket = listening->name();
        listener = *std::move(listening);
    }
    return own;
}

Error explained(Error error) {
    if (error.operation == Operation::connect && error.reason == Reason::refused) {
        error.text = "the first rank of its host is on another host, or in another network namespace";
    }
    return error;
}

// The link and the memory of one host.
class Sharing {
  public:
    Sharing(store::Rendezvous& rendezvous, const Meeting& meeting, std::optional<shm::HostLink> listener)
        : rendezvous_(rendezvous),
          meeting_(meeting),
          own_(rendezvous.party().rank),
          host_(meeting.groups.ranks[meeting.groups.host_of(own_)]),
          link_(std::move(listener)) {}

    // Nothing to share, and no error: the rank is alone in a job on several hosts.
    [[nodiscard]] Result<SharedHost> share(Time deadline) {
        const shm::HostShape shape = shape_of(control::plan_memory(meeting_.groups), host_.size());
        if (shape.ranks == 1) return alone(shape);
        const Secret secret = secret_of(rendezvous_, meeting_.facts[host_.front()], host_.front());
        const auto index = static_cast<unsigned>(meeting_.groups.index_of(own_));
        if (index != 0) {
            auto connected = shm::HostLink::connect(meeting_.facts[host_.front()].socket, index, secret, deadline);
            if (!connected) return tl::unexpected(explained(connected.error()));
            link_ = *std::move(connected);
        }
        auto memory = index == 0 ? link_->share(shape, secret, deadline, [this] { return someone_failed(); })
                                 : link_->adopt(shape, index, secret, deadline);
        if (!memory) return tl::unexpected(memory.error());
        return SharedHost{.memory = *std::move(memory), .link = std::move(link_)};
    }

  private:
    [[nodiscard]] Result<SharedHost> alone(const shm::HostShape& shape) const {
        if (meeting_.groups.ranks.size() > 1) return SharedHost{};
        auto memory = shm::SharedMemory::create(shape.bytes());
        if (!memory) return tl::unexpected(memory.error());
        return SharedHost{.memory = std::make_unique<shm::HostMemory>(*std::move(memory), shape, 0), .link = {}};
    }

    // A rank that cannot connect says so in the store, and then this rank need not wait for it.
    [[nodiscard]] bool someone_failed() const {
        return std::ranges::any_of(host_, [&](std::uint16_t rank) {
            return rank != own_ && rendezvous_.has_come(control::round_shared, rank);
        });
    }

    store::Rendezvous& rendezvous_;
    const Meeting& meeting_;
    std::uint32_t own_;
    const std::vector<std::uint16_t>& host_;
    std::optional<shm::HostLink> link_;
};

}  // namespace

bool may_share(const Options& options) { return options.host_level; }

Result<Meeting> meet(store::Rendezvous& rendezvous, const Options& options, Time deadline) {
    const store::Party& party = rendezvous.party();
    std::optional<shm::HostLink> listener;
    const wire::RankFacts own = own_facts(options, rendezvous, listener);
    const auto values = rendezvous.all_gather(control::round_facts, control::message_text(own), deadline);
    if (!values) return tl::unexpected(values.error());
    auto facts = control::agreed_facts(*values, party.rank);
    if (!facts) return tl::unexpected(facts.error());
    Meeting meeting{.facts = *std::move(facts), .groups = {}, .shared = {}, .chunk_lanes = 0};
    meeting.groups = control::group_by_host(meeting.facts);
    meeting.shared.link = std::move(listener);
    meeting.chunk_lanes = control::plan_memory(meeting.groups).chunk_lanes;
    return meeting;
}

Result<void> share_memory(store::Rendezvous& rendezvous, Meeting& meeting, Time deadline) {
    const store::Party& party = rendezvous.party();
    auto listener = std::exchange(meeting.shared.link, std::nullopt);
    if (party.world == 1 ? !meeting.facts.front().shares : !meeting.groups.any_shared()) return {};
    auto shared = Sharing(rendezvous, meeting, std::move(listener)).share(deadline);
    std::vector<wire::SharedFacts> outcomes{{.problem = shared ? std::string() : to_string(shared.error())}};
    if (shared) meeting.shared = *std::move(shared);
    if (party.world > 1) {
        auto all = rendezvous.exchange(control::round_shared, outcomes.front(), party.ranks(), deadline,
                                       wire::decode<wire::SharedFacts>);
        if (!all) return tl::unexpected(all.error());
        outcomes = *std::move(all);
    }
    control::part_hosts(meeting.groups, outcomes);
    const bool shares = party.world == 1 || meeting.groups.ranks[meeting.groups.host_of(party.rank)].size() > 1;
    if (!shares) meeting.shared = {};
    return {};
}

}  // namespace atp::comm
