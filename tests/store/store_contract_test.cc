// SPDX-License-Identifier: Apache-2.0
// Requirements for every store, tested with the store for threads and the store for processes.
#include <gtest/gtest.h>

#include <atomic>
#include <ostream>
#include <thread>

#include "store/memory_store.h"
#include "store_fixture.h"

namespace atp::store {
namespace {

using test::error_of;
using test::failed_with;
using test::longest_wait;
using test::says;
using test::shortly;

using Keys = std::vector<std::string>;

// The store object of each rank.
class World {
  public:
    virtual ~World() = default;
    virtual Store& rank(std::size_t number) = 0;
};

class Threads : public World {
  public:
    explicit Threads(const StoreLimits& limits) : store_(limits) {}
    Store& rank(std::size_t) override { return store_; }

  private:
    MemoryStore store_;
};

class Processes : public World {
  public:
    explicit Processes(const StoreLimits& limits)
        : server_(test::serve({.limits = limits, .clients = 100, .message_timeout = std::chrono::seconds(60)})) {}
    // Call this for all ranks before their threads start.
    Store& rank(std::size_t number) override {
        while (ranks_.size() <= number) ranks_.push_back(test::connect(server_->local()));
        return *ranks_[number];
    }

  private:
    std::unique_ptr<TcpStoreServer> server_;
    std::vector<std::unique_ptr<TcpStore>> ranks_;
};

enum class Which { memory, tcp };
void PrintTo(Which which, std::ostream* out) { *out << (which == Which::memory ? "memory" : "tcp"); }

class StoreContract : public testing::TestWithParam<Which> {
  protected:
    void SetUp() override { open({}); }
    void open(const StoreLimits& limits) {
        if (GetParam() == Which::memory) {
            world_ = std::make_unique<Threads>(limits);
        } else {
            world_ = std::make_unique<Processes>(limits);
        }
    }
    Store& rank(std::size_t number) { return world_->rank(number); }

    std::unique_ptr<World> world_;
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::Values(Which::memory, Which::tcp),
                         testing::PrintToStringParamName());

TEST_P(StoreContract, ValueOfOneRankIsReadByAnother) {
    const std::string value("any\0bytes\xFF", 10);
    ASSERT_TRUE(rank(0).set("key", value));
    EXPECT_EQ(rank(1).get("key", longest_wait()), value);
    EXPECT_EQ(rank(1).get("key", longest_wait()), value) << "getting leaves it there";
}

TEST_P(StoreContract, LastValueIsRead) {
    ASSERT_TRUE(rank(0).set("key", "first"));
    ASSERT_TRUE(rank(1).set("key", ""));
    EXPECT_EQ(rank(0).get("key", longest_wait()), "");
}

TEST_P(StoreContract, GetWaitsForALaterSet) {
    Store& early = rank(0);
    Store& late = rank(1);
    Result<std::string> got;
    std::thread other([&] { got = early.get("key", longest_wait()); });
    ASSERT_TRUE(late.set("another", "x"));
    ASSERT_TRUE(late.set("key", "value"));
    other.join();
    EXPECT_EQ(got, "value") << error_of(got);
}

TEST_P(StoreContract, WaitReturnsWhenAllKeysAreSetInAnyOrder) {
    Store& waiter = rank(0);
    std::atomic<bool> last_is_set = false;
    Result<void> waited;
    bool was_set = false;
    std::thread other([&] {
        waited = waiter.wait(Keys{"a", "b", "a", "c"}, longest_wait());
        was_set = last_is_set;
    });
    ASSERT_TRUE(rank(1).set("c", ""));
    ASSERT_TRUE(rank(1).set("a", ""));
    last_is_set = true;
    ASSERT_TRUE(rank(1).set("b", ""));
    other.join();
    EXPECT_TRUE(waited) << error_of(waited);
    EXPECT_TRUE(was_set);
}

TEST_P(StoreContract, ManyKeysAreReadInTheirOrder) {
    Keys keys;
    Keys values;
    for (int i = 0; i < 1000; ++i) {
        keys.push_back("key " + std::to_string(i));
        values.push_back("value " + std::to_string(i * i));
        ASSERT_TRUE(rank(0).set(keys.back(), values.back()));
    }
    EXPECT_EQ(rank(1).get_all(keys, longest_wait()), values);
    EXPECT_TRUE(rank(1).wait(keys, longest_wait()));
    EXPECT_EQ(rank(1).missing(keys), Keys{});
    EXPECT_EQ(rank(1).get_all({}, longest_wait()), Keys{});
}

TEST_P(StoreContract, LongestValuesAreReadTogether) {
    Keys keys;
    Keys values;
    for (char c = 'a'; c < 'f'; ++c) {
        keys.emplace_back(max_key_bytes, c);
        values.emplace_back(max_value_bytes, c);
        ASSERT_TRUE(rank(0).set(keys.back(), values.back()));
    }
    EXPECT_TRUE(rank(1).get_all(keys, longest_wait()) == values);
}

TEST_P(StoreContract, PassedDeadlineNamesTheMissingKeys) {
    ASSERT_TRUE(rank(0).set("there", ""));
    const auto waited = rank(0).wait(Keys{"there", "lost", "gone"}, shortly());
    ASSERT_TRUE(failed_with(waited, Reason::timed_out)) << error_of(waited);
    EXPECT_EQ(waited.error().operation, Operation::rendezvous);
    EXPECT_GE(waited.error().elapsed, std::chrono::milliseconds(20));
    EXPECT_EQ(waited.error().text, "no rank has set 'lost' and 'gone'");
    const auto got = rank(0).get("lost", shortly());
    ASSERT_TRUE(failed_with(got, Reason::timed_out)) << error_of(got);
    EXPECT_EQ(got.error().text, "no rank has set 'lost'");
}

TEST_P(StoreContract, StoreWorksAfterADeadline) {
    for (int i = 0; i < 20; ++i) {
        const std::string key = "key " + std::to_string(i);
        EXPECT_TRUE(failed_with(rank(0).get(key, net::now()), Reason::timed_out));
        ASSERT_TRUE(rank(1).set(key, key));
        EXPECT_EQ(rank(0).get(key, net::now()), key) << "a deadline that has passed looks once";
    }
}

TEST_P(StoreContract, AnswerAtTheDeadlineIsTheValueOrATimeout) {
    Store& waiter = rank(0);
    for (int i = 0; i < 200; ++i) {
        const std::string key = "key " + std::to_string(i);
        Result<std::string> got;
        std::thread other([&] { got = waiter.get(key, net::now() + std::chrono::microseconds(i * 5)); });
        ASSERT_TRUE(rank(1).set(key, key));
        other.join();
        EXPECT_TRUE(got == key || failed_with(got, Reason::timed_out)) << error_of(got);
        EXPECT_EQ(waiter.get(key, longest_wait()), key) << "answers belong to their questions";
    }
}

TEST_P(StoreContract, CounterCountsEveryCall) {
    constexpr int threads = 8;
    constexpr int calls = 200;
    for (int i = 0; i < threads; ++i) ASSERT_NE(&rank(static_cast<std::size_t>(i)), nullptr);
    std::atomic<int> lasts = 0;
    std::vector<std::thread> others;
    for (int i = 0; i < threads; ++i) {
        others.emplace_back([&, i] {
            for (int call = 0; call < calls; ++call) {
                const auto sum = rank(static_cast<std::size_t>(i)).add("counter", 1);
                ASSERT_TRUE(sum) << error_of(sum);
                if (*sum == threads * calls) ++lasts;
            }
        });
    }
    for (std::thread& other : others) other.join();
    EXPECT_EQ(lasts, 1) << "exactly one call is the last";
    EXPECT_EQ(rank(0).get("counter", longest_wait()), std::to_string(threads * calls));
    EXPECT_EQ(rank(0).add("counter", -threads * calls - 7), -7);
}

TEST_P(StoreContract, CounterWakesItsWaiters) {
    Store& waiter = rank(0);
    Result<std::string> got;
    std::thread other([&] { got = waiter.get("counter", longest_wait()); });
    ASSERT_TRUE(rank(1).add("counter", 5));
    other.join();
    EXPECT_EQ(got, "5") << error_of(got);
}

TEST_P(StoreContract, AdditionToTextOrBeyond64BitsIsRejected) {
    ASSERT_TRUE(rank(0).set("text", "12 monkeys"));
    const auto sum = rank(0).add("text", 1);
    ASSERT_TRUE(failed_with(sum, Reason::rejected)) << error_of(sum);
    EXPECT_TRUE(says(sum.error().text, "value of 'text' is not a number"));
    ASSERT_TRUE(rank(0).set("full", std::to_string(INT64_MAX)));
    EXPECT_TRUE(failed_with(rank(0).add("full", 1), Reason::rejected));
    EXPECT_EQ(rank(0).get("full", longest_wait()), std::to_string(INT64_MAX));
    EXPECT_EQ(rank(0).add("full", INT64_MIN), -1);
}

TEST_P(StoreContract, MissingReturnsTheUnsetKeys) {
    ASSERT_TRUE(rank(0).set("b", ""));
    EXPECT_EQ(rank(1).missing(Keys{"c", "b", "a"}), (Keys{"c", "a"}));
}

TEST_P(StoreContract, RemoveTakesThePrefixAlone) {
    for (const char* const key : {"a", "a/", "a/1", "a/2/3", "a0", "b/a/"}) ASSERT_TRUE(rank(0).set(key, "x"));
    EXPECT_EQ(rank(1).remove("a/"), 3U);
    EXPECT_EQ(rank(0).missing(Keys{"a", "a/", "a/1", "a/2/3", "a0", "b/a/"}), (Keys{"a/", "a/1", "a/2/3"}));
    EXPECT_EQ(rank(1).remove("a/"), 0U);
    EXPECT_TRUE(failed_with(rank(0).remove(""), Reason::malformed));
}

TEST_P(StoreContract, TooLargeKeyOrValueIsRefusedAndTheStoreContinues) {
    const std::string long_key(max_key_bytes + 1, 'k');
    const auto refused = rank(0).set(long_key, "");
    ASSERT_TRUE(failed_with(refused, Reason::too_large)) << error_of(refused);
    EXPECT_TRUE(says(refused.error().text, "257 bytes; the limit is 256"));
    EXPECT_TRUE(failed_with(rank(0).set("key", std::string(max_value_bytes + 1, 'v')), Reason::too_large));
    EXPECT_TRUE(failed_with(rank(0).get(long_key, shortly()), Reason::too_large));
    EXPECT_TRUE(failed_with(rank(0).add(long_key, 1), Reason::too_large));
    EXPECT_TRUE(failed_with(rank(0).set("", "no key"), Reason::malformed));
    ASSERT_TRUE(rank(0).set("key", "value"));
    EXPECT_EQ(rank(0).get("key", longest_wait()), "value");
}

TEST_P(StoreContract, FullStoreRefusesNewBytesAndTakesSmallerOnes) {
    open({.keys = 3, .bytes = 100});
    ASSERT_TRUE(rank(0).set("a", std::string(50, 'x')));
    const auto refused = rank(0).set("b", std::string(50, 'x'));
    ASSERT_TRUE(failed_with(refused, Reason::exhausted)) << error_of(refused);
    EXPECT_TRUE(says(refused.error().text, "51 of 100 bytes"));
    EXPECT_EQ(rank(0).missing(Keys{"b"}), Keys{"b"});
    ASSERT_TRUE(rank(0).set("a", std::string(99, 'y'))) << "in the place of the former";
    ASSERT_TRUE(rank(0).set("a", ""));
    ASSERT_TRUE(rank(0).add("b", 1));
    ASSERT_TRUE(rank(0).set("c", ""));
    EXPECT_TRUE(failed_with(rank(0).add("d", 1), Reason::exhausted));
    EXPECT_EQ(rank(0).remove("c"), 1U);
    EXPECT_TRUE(rank(0).set("d", ""));
}

TEST_P(StoreContract, CloseEndsPendingAndLaterCalls) {
    Store& store = rank(0);
    Result<std::string> got;
    std::atomic<bool> begun = false;
    std::thread other([&] {
        begun = true;
        got = store.get("key", longest_wait());
    });
    while (!begun) std::this_thread::yield();
    store.close();
    other.join();
    EXPECT_TRUE(failed_with(got, Reason::closed)) << error_of(got);
    EXPECT_TRUE(failed_with(store.set("key", ""), Reason::closed));
    EXPECT_TRUE(failed_with(store.add("key", 1), Reason::closed));
    EXPECT_TRUE(failed_with(store.wait(Keys{"key"}, longest_wait()), Reason::closed));
    EXPECT_TRUE(failed_with(store.missing(Keys{"key"}), Reason::closed));
    EXPECT_TRUE(failed_with(store.remove("key"), Reason::closed));
}

}  // namespace
}  // namespace atp::store
