// SPDX-License-Identifier: Apache-2.0
#include "site.h"

#include <cstdlib>
#include <fstream>
#include <ranges>
#include <utility>

#include "client/switch_client.h"
#include "keys/key_file.h"
#include "net/clock.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

std::vector<std::string> words_of(const std::vector<std::string>& flags, const std::string& address) {
    std::vector<std::string> words{"switch",          "--listen", address,   "--memory", "4MB",
                                   "--server-memory", "256MB",    "--lanes", "64",       "--quiet"};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
}

}  // namespace

SwitchProcess::SwitchProcess(const std::vector<std::string>& flags, const std::string& address)
    : address_(wire::Address::parse(address).value()), program_(words_of(flags, address)) {
    const auto client = client::SwitchClient::open(address_);
    EXPECT_TRUE(client && (*client)->greet(net::now() + longest_wait)) << "no switch at " << address;
}

client::SwitchReport SwitchProcess::report() const {
    const auto client = client::SwitchClient::open(address_);
    const auto text = client ? (*client)->report(net::now() + longest_wait) : tl::unexpected(client.error());
    const auto report = text ? client::read_switch_report(*text) : std::nullopt;
    if (report) return *report;
    ADD_FAILURE() << "no report: " << (text ? *text : to_string(text.error()));
    return {.shards = {{}}};
}

std::uint32_t SwitchProcess::members_of(std::uint32_t job) const {
    for (const client::ShardReport& shard : report().shards) {
        for (const client::ChannelReport& channel : shard.channels) {
            if (channel.job == job && channel.channel == 0) return channel.present;
        }
    }
    return 0;
}

Wiretap::Wiretap(const wire::Address& server, Change change)
    : relay_(
          server, [](Way, unsigned, std::size_t) { return Disposition::pass; },
          [this, change = std::move(change)](Way way, const wire::Address& client, Bytes& bytes) {
              keep(way, client, bytes);
              if (change) change(way, client, bytes);
          }) {}

void Wiretap::keep(Way way, const wire::Address& client, const Bytes& bytes) {
    const std::lock_guard lock(changing_);
    recorded_.push_back({way, client, bytes});
}

std::vector<Wiretap::Datagram> Wiretap::recorded() const {
    const std::lock_guard lock(changing_);
    return recorded_;
}

std::optional<atp_header> Wiretap::last_gradient() const {
    const std::lock_guard lock(changing_);
    for (const Datagram& each : std::views::reverse(recorded_)) {
        Bytes bytes = each.bytes;
        wire::Packet packet;
        if (wire::decode(bytes, packet) != wire::DecodeError::none) continue;
        if (packet.header.type == ATP_TYPE_GRADIENT) return packet.header;
    }
    return std::nullopt;
}

void Site::SetUp() {
    std::string name = (std::filesystem::temp_directory_path() / "atp-site-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    vision_ = {.id = 7, .tenant = "vision", .at_switch = {}, .key = keys::random_key()};
    speech_ = {.id = 8, .tenant = "speech", .at_switch = {}, .key = keys::random_key()};
    std::ofstream file(folder_ / "tenants.toml");
    for (const crypto::TenantKey& key : {vision_, speech_}) {
        ASSERT_TRUE(keys::write_key_file(folder_ / (key.tenant + ".key"), key));
        ASSERT_TRUE(keys::write_key_file(folder_ / (key.tenant + "-leaf-1.key"), key_for_switch(key, "leaf-1")));
        file << "[[tenant]]\nname = \"" << key.tenant << "\"\nkeys = [\"" << key.tenant << "-leaf-1.key\"]\n";
    }
    file.close();
    std::filesystem::permissions(folder_ / "tenants.toml", std::filesystem::perms::owner_read);
}

comm::Options Site::options_of(const std::string& tenant) const {
    comm::Options options = small_options();
    if (!tenant.empty()) options.key_file = folder_ / (tenant + ".key");
    options.server = comm::ServerPlace::on_switch;
    return options;
}

void expect_sums(const std::vector<std::unique_ptr<comm::Communicator>>& ranks, std::uint32_t rounds) {
    each(static_cast<std::uint32_t>(ranks.size()), [&](std::uint32_t rank) {
        for (std::uint32_t round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
            expect_sum(*ranks[rank], several_windows, round);
        }
    });
}

void expect_new_job(const std::string& switch_address, const comm::Options& options) {
    expect_sums(Job(2, {switch_address}, options).formed(), 2);
}

}  // namespace atp::test
