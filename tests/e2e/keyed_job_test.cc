// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks have a key, at switches that ask for it, over sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/tenants.h"
#include "fabric.h"
#include "keys/key_file.h"
#include "values.h"

namespace atp::test {
namespace {

using control::Tenant;
using control::Tenants;
using ::testing::HasSubstr;

class KeyedJob : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "atp-keyed-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        key_file_ = file_of(vision_, "vision.key");
        other_file_ = file_of({.id = 7, .tenant = "vision", .at_switch = {}, .key = keys::random_key()}, "other.key");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string file_of(const crypto::TenantKey& key, const std::string& name) const {
        EXPECT_TRUE(keys::write_key_file(folder_ / name, key));
        return folder_ / name;
    }
    [[nodiscard]] switchd::SwitchNodeConfig asking(const std::string& name) const {
        switchd::SwitchNodeConfig config = small_switch();
        config.tenants = std::make_shared<const Tenants>(
            std::vector{Tenant{.name = "vision", .keys = {key_for_switch(vision_, name)}},
                        Tenant{.name = "fabric", .keys = {key_for_switch(fabric_, name)}, .fabric = true}});
        config.parent_key = std::make_shared<const crypto::TenantKey>(key_for_switch(fabric_, "spine"));
        return config;
    }
    [[nodiscard]] static comm::Options with_key(std::string file) {
        comm::Options options = small_options();
        options.key_file = std::move(file);
        options.join_timeout = longest_wait;
        return options;
    }
    static void expect_sums(comm::Communicator& ranks) {
        expect_sum(ranks, several_windows, 1);
        expect_sum(ranks, several_windows, 2);
    }
    static void expect_refused(Job& job, const std::string& text) {
        for (const Job::Formed& formed : job.form_all()) {
            ASSERT_FALSE(formed);
            EXPECT_EQ(formed.error().reason, Reason::rejected) << to_string(formed.error());
            EXPECT_THAT(formed.error().text, HasSubstr(text));
        }
    }

    crypto::TenantKey vision_{.id = 7, .tenant = "vision", .at_switch = {}, .key = keys::random_key()};
    crypto::TenantKey fabric_{.id = 9, .tenant = "fabric", .at_switch = {}, .key = keys::random_key()};
    std::filesystem::path folder_;
    std::string key_file_;
    std::string other_file_;  // of another key with the same id
};

TEST_F(KeyedJob, SumsAtASwitchThatHasItsTenant) {
    switchd::SwitchNodeConfig config = asking("leaf");
    config.shards = 2;
    const auto node = start(config);
    Job(3, {address_of(*node)}, with_key(key_file_)).run(expect_sums);
    EXPECT_TRUE(eventually([&] { return node->snapshot().shards.size() == 2; }));
}

TEST_F(KeyedJob, SumsOverLeavesThatJoinTheirParentWithAKey) {
    TwoLevels fabric(asking("spine"), asking("leaf"));
    Job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, with_key(key_file_)).run(expect_sums);
}

TEST_F(KeyedJob, H100_IsRefusedWithOneTextWithoutAKeyOrWithAnother) {
    const auto node = start(asking("leaf"));
    Job without(2, {address_of(*node)}, with_key(""));
    expect_refused(without, "no such job or key");
    Job wrong(2, {address_of(*node)}, with_key(other_file_));
    expect_refused(wrong, "no such job or key");
}

TEST_F(KeyedJob, H100_JoinsNoOpenSwitch) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)}, with_key(key_file_));
    expect_refused(job, "asks for no key");
}

// The last switch joins the server in a rank, and without a switch the ranks join each other's servers.
TEST_F(KeyedJob, SumsWithServersInItsRanks) {
    const auto node = start(asking("leaf"));
    comm::Options options = with_key(key_file_);
    options.server = comm::ServerPlace::colocated;
    Job(2, {address_of(*node)}, options).run(expect_sums);

    Job hosts(2, {""}, with_key(key_file_));
    run_with(
        hosts,
        [&](std::uint32_t rank) {
            comm::Options own = hosts.options_of(rank);
            own.host_name = "host" + std::to_string(rank);
            own.listen = "127.0.0." + std::to_string(2 + rank) + ":0";
            return own;
        },
        expect_sums);
}

}  // namespace
}  // namespace atp::test
