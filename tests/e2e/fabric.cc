// SPDX-License-Identifier: Apache-2.0
#include "fabric.h"

#include <sys/socket.h>

#include <thread>
#include <utility>

#include "control/address_range.h"
#include "emulation/emulated_transport.h"
#include "net/clock.h"

namespace atp::test {

switchd::SwitchNodeConfig small_switch() {
    switchd::SwitchNodeConfig config;
    config.udp.local = wire::Address::loopback(wire::Family::ipv4, 0);
    config.memory_bytes = 4'000'000;
    config.groups = *control::parse_ranges("239.192.0.0/16");
    return config;
}

switchd::SwitchNodeConfig with_ports(switchd::SwitchNodeConfig config, const emulation::PortConfig& port) {
    config.open_transport = [port](const net::UdpConfig& udp, std::uint32_t shard) {
        return emulation::EmulatedTransport::open(udp, {.ports = {.in = port, .out = port}, .number = shard});
    };
    return config;
}

std::unique_ptr<switchd::SwitchNode> start(const switchd::SwitchNodeConfig& config) {
    auto node = switchd::SwitchNode::start(config);
    if (node) return *std::move(node);
    ADD_FAILURE() << to_string(node.error());
    return nullptr;
}

std::string address_of(const switchd::SwitchNode& node) { return to_string(node.address()); }

std::uint64_t memory_for(std::uint32_t aggregators, const switchd::SwitchNodeConfig& config) {
    switchd::SwitchNodeConfig probe = config;
    probe.memory_bytes = 1 << 30;
    probe.shards = 1;
    const std::uint64_t one = probe.memory_bytes / switchd::aggregators_of_shard(probe);
    return one * aggregators * config.shards;
}

TwoLevels::TwoLevels(const switchd::SwitchNodeConfig& root_config, switchd::SwitchNodeConfig leaf_config)
    : root(start(root_config)) {
    if (root == nullptr) return;
    leaf_config.parent = root->address();
    for (auto& leaf : leaves) leaf = start(leaf_config);
}

comm::Options small_options() {
    comm::Options options;
    options.lanes = small_lanes;
    options.window = small_window;
    options.join_timeout = longest_wait;
    options.timeout = longest_wait;
    options.socket_buffer_bytes = 1U << 20U;
    options.host_level = false;                // all ranks are on one host, and these tests are about the network
    options.scaling = tensor::Scaling::fixed;  // expected sums are those at the scale of the job
    return options;
}

Job::Job(std::uint32_t world, std::vector<std::string> switches, comm::Options options)
    : world_(world), switches_(std::move(switches)), options_(std::move(options)) {}

comm::Options Job::options_of(std::uint32_t rank) const {
    comm::Options options = options_;
    options.switch_address = switches_[rank % switches_.size()];
    return options;
}

Job::Formed Job::form(std::uint32_t rank) { return comm::Communicator::form(store_, rank, world_, options_of(rank)); }

std::vector<Job::Formed> Job::form_all() {
    std::vector<Formed> formed(world_);
    each(world_, [&](std::uint32_t rank) { formed[rank] = form(rank); });
    return formed;
}

std::vector<std::unique_ptr<comm::Communicator>> Job::formed() {
    std::vector<std::unique_ptr<comm::Communicator>> ranks;
    for (Formed& rank : form_all()) {
        if (!rank) {
            ADD_FAILURE() << to_string(rank.error());
            return {};
        }
        ranks.push_back(*std::move(rank));
    }
    return ranks;
}

void Job::run(const std::function<void(comm::Communicator&)>& body) {
    each(world_, [&](std::uint32_t rank) {
        const Formed communicator = form(rank);
        if (!communicator) {
            ADD_FAILURE() << "rank " << rank << ": " << to_string(communicator.error());
            return;
        }
        body(**communicator);
    });
}

void run_with(Job& job, const std::function<comm::Options(std::uint32_t)>& options_of,
              const std::function<void(comm::Communicator&)>& body) {
    each(job.world(), [&](std::uint32_t rank) {
        const auto formed = comm::Communicator::form(job.store(), rank, job.world(), options_of(rank));
        ASSERT_TRUE(formed) << to_string(formed.error());
        body(**formed);
    });
}

void each(std::uint32_t count, const std::function<void(std::uint32_t)>& body) {
    std::vector<std::jthread> threads;
    for (std::uint32_t number = 0; number < count; ++number) threads.emplace_back(body, number);
}

std::vector<wire::Address> open_ports() {
    std::vector<wire::Address> ports;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
        int type = 0;
        socklen_t size = sizeof type;
        if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM) continue;
        sockaddr_storage storage{};
        socklen_t length = sizeof storage;
        if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &length) != 0) continue;
        const wire::Address address = wire::Address::from(reinterpret_cast<sockaddr*>(&storage), length);
        if (address.port() != 0) ports.push_back(wire::Address::loopback(wire::Family::ipv4, address.port()));
    }
    return ports;
}

bool eventually(const std::function<bool()>& condition) {
    for (const Time until = net::now() + longest_wait; net::now() < until;) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

bool succeeds(const Result<comm::Handle>& work) {
    if (work) return succeeds((*work)->wait());
    ADD_FAILURE() << to_string(work.error());
    return false;
}

bool succeeds(const Result<void>& done) {
    if (done) return true;
    ADD_FAILURE() << to_string(done.error());
    return false;
}

Error error_of(const Result<comm::Handle>& work) {
    if (!work) return work.error();
    const Result<void> outcome = (*work)->wait();
    if (!outcome) return outcome.error();
    ADD_FAILURE() << "it succeeded";
    return {};
}

testing::AssertionResult says(const Error& error, std::string_view text) {
    if (to_string(error).find(text) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "\"" << to_string(error) << "\" does not say \"" << text << "\"";
}

protocol::WorkerCounters counters_of(const comm::Communicator& communicator) {
    protocol::WorkerCounters sum;
    for (const comm::ChannelCounters& channel : communicator.counters()) {
        sum.sent += channel.worker.sent;
        sum.acks += channel.worker.acks;
        sum.readies += channel.worker.readies;
        sum.resent += channel.worker.resent;
        sum.forged += channel.worker.forged;
        sum.bypassed += channel.worker.bypassed;
        sum.ecn_acks += channel.worker.ecn_acks;
        sum.halvings += channel.worker.halvings;
    }
    return sum;
}

}  // namespace atp::test
