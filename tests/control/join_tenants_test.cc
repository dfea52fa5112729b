// SPDX-License-Identifier: Apache-2.0
// What a tree answers to members of tenants, and what it says to the operator.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

using std::chrono::seconds;

struct Team : Tree {
    Team(JoinTreeConfig config, std::vector<Tenant> tenants) : Tree(with(std::move(config), std::move(tenants))) {
        pass(seconds(1));
    }

    static JoinTreeConfig with(JoinTreeConfig config, std::vector<Tenant> tenants) {
        config.tenants = std::make_shared<const Tenants>(std::move(tenants));
        return config;
    }
    // A member of tenant `name` joins this job.
    void ask(const std::string& name, std::uint32_t number, wire::Join join, const wire::Address& from,
             std::uint32_t key_id = 7) {
        join.terms.job = number;
        join.epoch = ++epoch;
        tree.handle_join(join, from, now, 0, {.tenant = tree.config().tenants->named(name), .key_id = key_id});
        drain();
    }
    void alone(const std::string& name, std::uint32_t number, const wire::Address& from = worker(1)) {
        ask(name, number, join_of_member(0, 1, 0), from);
    }
    [[nodiscard]] std::vector<TreeNotice> notices(TreeNotice::Kind kind) {
        std::vector<TreeNotice> found;
        while (auto notice = tree.poll_notice()) {
            if (notice->kind == kind) found.push_back(*std::move(notice));
        }
        return found;
    }
    std::uint32_t epoch = 0;
};

ChannelKey key_of_job(std::uint32_t number) { return {number, token, channel}; }

TEST(JoinTenants, MemberLearnsWhichLimitItsTenantHit) {
    Team star({}, {{.name = "vision", .jobs = 2}, {.name = "speech", .jobs = 1}});
    star.alone("vision", 1, worker(1));
    star.alone("vision", 2, worker(2));
    star.alone("vision", 3, worker(3));
    star.expect_refused(worker(3), Refusal::full, "tenant vision has 2 of 2 jobs on this switch");
    star.alone("speech", 4, worker(4));
    EXPECT_NE(star.tree.find(key_of_job(4)), nullptr);

    Team few({}, {{.name = "vision", .channels = 1}});
    few.alone("vision", 1, worker(1));
    few.alone("vision", 2, worker(2));
    few.expect_refused(worker(2), Refusal::full, "tenant vision has 1 of 1 channels on this switch");
}

TEST(JoinTenants, OperatorReadsTenantKeyAndReason) {
    Team star({}, {{.name = "vision", .jobs = 1}, {.name = "speech"}});
    star.alone("vision", 1);
    star.alone("vision", 2);
    star.alone("speech", 1);
    std::vector<TreeNotice> formed;
    std::vector<TreeNotice> refused;
    while (auto notice = star.tree.poll_notice()) {
        if (notice->kind == TreeNotice::Kind::job_formed) formed.push_back(*notice);
        if (notice->kind == TreeNotice::Kind::job_refused) refused.push_back(*notice);
    }
    ASSERT_EQ(formed.size(), 1U);
    EXPECT_EQ(formed[0].tenant, "vision");
    EXPECT_EQ(formed[0].key, 7U);
    EXPECT_EQ(formed[0].channels, 1U);
    ASSERT_EQ(refused.size(), 2U);
    EXPECT_EQ(refused[0].tenant, "vision");
    EXPECT_EQ(refused[0].key, 7U);
    EXPECT_THAT(refused[0].reason, HasSubstr("1 of 1 jobs"));
    EXPECT_EQ(refused[1].tenant, "speech");
    EXPECT_EQ(refused[1].reason, "the job is one of tenant vision");
}

TEST(JoinTenants, JobOfAnotherTenantIsAsUnknownAsAWrongKey) {
    Team star({}, {{.name = "vision"}, {.name = "speech"}});
    star.ask("vision", 1, join_of_member(0, 2, 0), worker(0));
    star.ask("speech", 1, join_of_member(0, 2, 1), worker(1));
    const auto answers = star.sent_to<wire::Refused>(worker(1));
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].text, "no such job or key");
    EXPECT_EQ(star.tree.find(key_of_job(1))->receivers, 1U);
    // Another channel of the same job.
    star.ask("speech", 1, but(join_of_member(0, 2, 1), [](auto& join) { join.terms.channel = 9; }), worker(1));
    ASSERT_EQ(star.sent_to<wire::Refused>(worker(1)).size(), 2U);
    EXPECT_EQ(star.sent_to<wire::Refused>(worker(1))[1].text, "no such job or key");
}

TEST(JoinTenants, TenantJoinsFromItsSourcesOnly) {
    Team star({}, {{.name = "vision", .sources = *parse_ranges("10.0.0.101/32")},
                   {.name = "fabric", .sources = *parse_ranges("10.0.0.102/32"), .fabric = true}});
    star.ask("vision", 1, join_of_member(0, 2, 0), worker(1));
    EXPECT_NE(star.tree.find(key_of_job(1)), nullptr);
    star.ask("vision", 1, join_of_member(0, 2, 1), worker(2));
    star.expect_refused(worker(2), Refusal::unsupported, "tenant vision may not join from 10.0.0.102");
    // A switch of the fabric that asks for it counts by its own sources.
    wire::Join join = join_of_unit(0, 0, 2, 1);
    join.terms.job = 2;
    join.epoch = 100;
    const Tenants& tenants = *star.tree.config().tenants;
    star.tree.handle_join(join, worker(2), star.now, 0,
                          {.tenant = tenants.named("vision"), .sender = tenants.named("fabric"), .key_id = 9});
    star.drain();
    ASSERT_NE(star.tree.find(key_of_job(2)), nullptr);
    EXPECT_EQ(star.tree.find(key_of_job(2))->owner.tenant, "vision");
}

TEST(JoinTenants, TargetsAreThoseOfTheTenantInPlaceOfTheSwitchs) {
    JoinTreeConfig config;
    config.servers = *parse_ranges("10.1.0.0/16");
    Team star(config,
              {{.name = "vision", .servers = *parse_ranges("10.2.0.0/16"), .groups = *parse_ranges("239.1.0.0/16")},
               {.name = "speech"}});
    const auto serves = [&](const char* name, std::uint32_t number, const char* server, const char* group) {
        star.ask(name, number,
                 but(join_of_member(0, 1, 0),
                     [&](wire::Join& join) {
                         if (server != nullptr) join.terms.server = endpoint_of(*wire::Address::parse(server));
                         if (group != nullptr) join.terms.group = endpoint_of(*wire::Address::parse(group));
                     }),
                 worker(number));
        return star.tree.find(key_of_job(number)) != nullptr;
    };
    EXPECT_TRUE(serves("vision", 1, "10.2.0.1:5000", nullptr));
    EXPECT_FALSE(serves("vision", 2, "10.1.0.1:5000", nullptr));
    EXPECT_TRUE(serves("speech", 3, "10.1.0.1:5000", nullptr));
    EXPECT_FALSE(serves("speech", 4, "10.2.0.1:5000", nullptr));
    EXPECT_TRUE(serves("vision", 5, nullptr, "239.1.2.3:4792"));
    EXPECT_FALSE(serves("vision", 6, nullptr, "239.2.2.3:4792"));
    EXPECT_FALSE(serves("speech", 7, nullptr, "239.1.2.3:4792"));
    EXPECT_THAT(star.sent_to<wire::Refused>(worker(2)).at(0).text,
                HasSubstr("tenant vision may not name 10.1.0.1:5000"));
    EXPECT_THAT(star.sent_to<wire::Refused>(worker(6)).at(0).text, HasSubstr("tenant vision may not have results"));
}

TEST(JoinTenants, MemoryForServersIsLimitedAndKeptByTenant) {
    const std::uint64_t one = server_bytes_of(terms_of(1));
    JoinTreeConfig config;
    config.server_bytes = 8 * one;
    Team star(config, {{.name = "vision", .server_bytes = 3 * one}, {.name = "free"}});
    for (std::uint32_t number = 1; number <= 5; ++number) star.alone("free", number);
    EXPECT_EQ(star.tree.memory().used(), 5 * one);
    star.alone("free", 6, worker(6));
    star.expect_refused(worker(6), Refusal::full, "no memory for another parameter server");
    EXPECT_FALSE(star.tree.memory().grow(1, 0)) << "what is left is vision's";
    for (std::uint32_t number = 11; number <= 13; ++number) star.alone("vision", number);
    EXPECT_EQ(star.tree.memory().used(), 8 * one);
    star.alone("vision", 14, worker(14));
    EXPECT_THAT(star.sent_to<wire::Refused>(worker(14)).at(0).text, HasSubstr("tenant vision has"));
    EXPECT_THAT(star.sent_to<wire::Refused>(worker(14)).at(0).text, HasSubstr("server_memory"));
}

TEST(JoinTenants, MembersStayWhenTheirTenantIsGone) {
    Team star({}, {{.name = "vision"}, {.name = "speech"}});
    star.ask("vision", 1, join_of_member(0, 1, 0), worker(1));
    star.tree.set_tenants(std::make_shared<const Tenants>(std::vector<Tenant>{{.name = "speech"}}), star.now);
    star.ask("vision", 1, join_of_member(0, 1, 0), worker(1));  // its session names no tenant now
    ASSERT_NE(star.tree.find(key_of_job(1)), nullptr);
    EXPECT_EQ(star.tree.find(key_of_job(1))->receivers, 1U);
    EXPECT_EQ(star.tree.counters().refused, 0U);
}

TEST(JoinTenants, RevokedKeyEndsItsJobs) {
    Team star({}, {{.name = "vision"}, {.name = "speech"}});
    star.ask("vision", 1, join_of_member(0, 2, 0), worker(0));
    star.ask("vision", 1, join_of_member(0, 2, 1), worker(1), 8);
    star.ask("speech", 2, join_of_member(0, 1, 0), worker(2), 9);
    star.tree.set_tenants(
        std::make_shared<const Tenants>(std::vector<Tenant>{{.name = "vision", .revoked = {8}}, {.name = "speech"}}),
        star.now);
    star.drain();
    EXPECT_EQ(star.tree.find(key_of_job(1)), nullptr);
    for (const unsigned rank : {0U, 1U}) {
        ASSERT_EQ(star.sent_to<wire::Refused>(worker(rank)).size(), 1U);
        EXPECT_THAT(star.sent_to<wire::Refused>(worker(rank))[0].text, HasSubstr("key 8 of a member is revoked"));
    }
    EXPECT_NE(star.tree.find(key_of_job(2)), nullptr);
    star.ask("vision", 3, join_of_member(0, 1, 0), worker(3), 8);
    EXPECT_EQ(star.sent_to<wire::Refused>(worker(3)).at(0).text, unknown_text);
    star.ask("vision", 4, join_of_member(0, 1, 0), worker(4));
    EXPECT_NE(star.tree.find(key_of_job(4)), nullptr);
}

}  // namespace
}  // namespace atp::control
