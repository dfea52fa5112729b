// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks have a key, over stores that others read and change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/tenants.h"
#include "crypto/formation_seal.h"
#include "fabric.h"
#include "keys/key_file.h"
#include "support/fails.h"
#include "values.h"

namespace atp::test {
namespace {

using testing::HasSubstr;
using Places = std::map<std::string, std::string>;  // what stands in a store

// What a host with access to the store can do: read all that ranks leave, and show a rank something else.
class LyingStore final : public store::Store {
  public:
    explicit LyingStore(store::Store& inner) : inner_(inner) {}

    Result<void> set(std::string_view key, std::string_view value) override {
        {
            const std::scoped_lock lock(mutex_);
            seen_[std::string(key)] = value;
        }
        return inner_.set(key, value);
    }
    Result<std::int64_t> add(std::string_view key, std::int64_t delta) override { return inner_.add(key, delta); }
    Result<void> wait(std::span<const std::string> keys, Time deadline) override { return inner_.wait(keys, deadline); }
    Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override {
        auto values = inner_.get_all(keys, deadline);
        for (std::size_t at = 0; values && at < keys.size(); ++at) {
            if (lie) (*values)[at] = lie(keys[at], (*values)[at]);
        }
        return values;
    }
    Result<std::vector<std::string>> missing(std::span<const std::string> keys) override {
        return inner_.missing(keys);
    }
    Result<std::size_t> remove(std::string_view prefix) override { return inner_.remove(prefix); }
    void close() noexcept override { inner_.close(); }

    [[nodiscard]] Places seen() const {
        const std::scoped_lock lock(mutex_);
        return seen_;
    }

    std::function<std::string(const std::string& key, const std::string& value)> lie{};

  private:
    store::Store& inner_;
    mutable std::mutex mutex_;
    Places seen_;
};

class SealedFormation : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "atp-sealed-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        key_file_ = new_key(7);
        const auto key = keys::read_key_file(key_file_);
        ASSERT_TRUE(key);
        switchd::SwitchNodeConfig config = small_switch();
        config.tenants = std::make_shared<const control::Tenants>(
            std::vector{control::Tenant{.name = "t", .keys = {key_for_switch(*key, "leaf")}}});
        node_ = start(config);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string new_key(std::uint32_t id) {
        const std::string path = folder_ / ("key" + std::to_string(files_++));
        EXPECT_TRUE(keys::write_key_file(path, {.id = id, .tenant = "t", .at_switch = {}, .key = keys::random_key()}));
        return path;
    }
    [[nodiscard]] comm::Options options_of(std::uint32_t rank, std::uint32_t ranks_per_host) const {
        comm::Options options = small_options();
        options.host_level = true;
        options.host_name = "host " + std::to_string(rank / ranks_per_host);
        options.switch_address = address_of(*node_);
        options.join_timeout = longest_wait;
        options.key_file = key_file_;
        return options;
    }
    using Edit = std::function<void(std::uint32_t rank, comm::Options& options, LyingStore& store)>;
    // Four ranks form over one store, and what each left there. Returns the outcomes.
    std::vector<Result<void>> form(
        std::uint32_t ranks_per_host, const Edit& edit = [](std::uint32_t, comm::Options&, LyingStore&) {}) {
        store::MemoryStore shared;
        std::vector<Result<void>> outcomes(world);
        std::mutex mutex;
        seen_.clear();
        each(world, [&](std::uint32_t rank) {
            LyingStore store(shared);
            comm::Options options = options_of(rank, ranks_per_host);
            edit(rank, options, store);
            auto formed = comm::Communicator::form(store, rank, world, options);
            if (formed) {
                expect_sum(**formed, several_windows, 1);
            } else {
                outcomes[rank] = tl::unexpected(formed.error());
            }
            const std::scoped_lock lock(mutex);
            seen_.merge(store.seen());
        });
        return outcomes;
    }
    // Rank 0 reads `value` in place of what stands at `key`.
    [[nodiscard]] static Edit showing_rank_0(const Places& lies) {
        return [lies](std::uint32_t rank, comm::Options&, LyingStore& store) {
            if (rank != 0) return;
            store.lie = [lies](const std::string& key, const std::string& value) {
                const auto found = lies.find(key);
                return found == lies.end() ? value : found->second;
            };
        };
    }
    static void expect_refused(const std::vector<Result<void>>& outcomes, const std::string& why) {
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            EXPECT_TRUE(fails(outcomes[rank], {.reason = Reason::mismatched, .peer = HasSubstr("rank")}))
                << "rank " << rank << ", " << why;
        }
    }

    static constexpr std::uint32_t world = 4;
    std::unique_ptr<switchd::SwitchNode> node_;  // that asks for this key
    std::filesystem::path folder_;
    std::string key_file_;
    Places seen_;  // what the ranks left in the last formation

  private:
    int files_ = 0;
};

bool is_public(const std::string& key) { return key.find("/informed/") != std::string::npos; }

TEST_F(SealedFormation, RanksFormAndLeaveNothingThatOthersRead) {
    std::set<std::string> rounds;
    for (const std::uint32_t ranks_per_host : {1U, 2U, 4U}) {
        for (const Result<void>& outcome : form(ranks_per_host)) EXPECT_TRUE(outcome) << to_string(outcome.error());
        EXPECT_GE(seen_.size(), 2 * world - ranks_per_host % 4);
        for (const auto& [key, value] : seen_) {
            EXPECT_TRUE(is_public(key) || crypto::key_of_sealed(value) == 7U) << key;
            EXPECT_EQ(value.find("host"), std::string::npos) << key;
            rounds.insert(key.substr(0, key.rfind('/')));
        }
    }
    EXPECT_EQ(rounds, (std::set<std::string>{"atp/0/facts", "atp/0/network-0", "atp/0/plan", "atp/0/shared"}));
}

TEST_F(SealedFormation, H95_AChangedByteOfAnyValueIsRefused) {
    ASSERT_TRUE(form(2).front());
    const Places left = seen_;
    for (const auto& [place, value] : left) {
        // Rank 0 reads neither its own plan nor that of another host.
        if (place.find("/plan/") != std::string::npos) continue;
        for (const std::size_t at : {std::size_t{0}, std::size_t{5}, std::size_t{20}, std::size_t{40}}) {
            const auto changed = form(2, [&, where = place](std::uint32_t rank, comm::Options&, LyingStore& store) {
                if (rank != 0) return;
                store.lie = [&, where](const std::string& key, std::string read) {
                    if (key == where) read[at] = static_cast<char>(read[at] ^ 0x10);
                    return read;
                };
            });
            expect_refused(changed, place + ", byte " + std::to_string(at));
            if (HasFailure()) return;
        }
    }
}

TEST_F(SealedFormation, H95_ValuesOfAnEarlierFormationAreRefused) {
    for (const std::uint32_t ranks_per_host : {1U, 2U, 4U}) {
        ASSERT_TRUE(form(ranks_per_host).front());
        const Places earlier = seen_;
        for (const std::string_view round : {"/facts/", "/shared/", "/network-0/"}) {
            // On one host this round is the last: the others learn of the failure from their first sum.
            if (ranks_per_host == world && round == "/shared/") continue;
            Places lies;  // all that the other ranks left in this round
            for (const auto& [key, value] : earlier) {
                if (key.find(round) != std::string::npos && !key.ends_with("/0")) lies[key] = value;
            }
            if (!lies.empty()) expect_refused(form(ranks_per_host, showing_rank_0(lies)), std::string(round));
        }
        Places lies = earlier;
        std::erase_if(lies, [](const auto& one) { return is_public(one.first) || one.first.ends_with("/0"); });
        expect_refused(form(ranks_per_host, showing_rank_0(lies)), "all rounds");
    }
}

TEST_F(SealedFormation, H95_AValueInAnotherPlaceIsRefused) {
    const auto moved = form(1, [](std::uint32_t rank, comm::Options&, LyingStore& store) {
        if (rank != 0) return;
        const auto facts = std::make_shared<std::string>();
        store.lie = [facts](const std::string& key, const std::string& value) {
            if (key == "atp/0/facts/1") *facts = value;
            return key == "atp/0/facts/2" ? *facts : value;
        };
    });
    expect_refused(moved, "facts of rank 1 as those of rank 2");
}

TEST_F(SealedFormation, H95_RankWithoutTheKeyIsNamedOnAllRanks) {
    const std::string other = new_key(8);
    struct Row {
        std::string file, text;
    };
    for (const Row& row : {Row{"", "rank 2 has no key, the others key 7"}, Row{other, "rank 2 has key 8"}}) {
        const auto outcomes = form(2, [&](std::uint32_t rank, comm::Options& options, LyingStore&) {
            if (rank == 2) options.key_file = row.file;
        });
        for (const Result<void>& outcome : outcomes) {
            EXPECT_TRUE(fails(outcome, {.reason = Reason::mismatched, .peer = "rank 2", .text = HasSubstr(row.text)}));
        }
    }
}

TEST_F(SealedFormation, KeyFileThatOthersMayReadEndsTheFormationAtOnce) {
    const std::string open = new_key(7);
    ASSERT_EQ(chmod(open.c_str(), 0644), 0);
    const auto outcomes = form(1, [&](std::uint32_t rank, comm::Options& options, LyingStore&) {
        if (rank == 1) options.key_file = open;
    });
    EXPECT_TRUE(fails(outcomes[1], {.operation = Operation::open, .reason = Reason::denied, .peer = open}));
    for (const std::uint32_t rank : {0U, 2U, 3U}) {
        EXPECT_TRUE(fails(outcomes[rank], {.reason = Reason::mismatched, .peer = "rank 1"}));
    }
}

TEST_F(SealedFormation, KeyOfASwitchFormsNothing) {
    const std::string path = folder_ / "leaf";
    const auto tenant = keys::read_key_file(key_file_);
    ASSERT_TRUE(tenant && keys::write_key_file(path, crypto::key_for_switch(*tenant, "leaf3")));
    Job job(1, {""});
    job.options().key_file = path;
    EXPECT_TRUE(fails(job.form(0), {.reason = Reason::malformed, .text = HasSubstr("a switch's key")}));
}

}  // namespace
}  // namespace atp::test
