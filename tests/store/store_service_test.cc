// SPDX-License-Identifier: Apache-2.0
#include "store/store_service.h"

#include <gtest/gtest.h>

#include <map>

namespace atp::store {
namespace {

using Fields = std::vector<std::string>;

StoreRequest request(Kind kind, std::vector<std::string> keys = {}, std::string value = {}) {
    return {.kind = kind, .number = 0, .keys = std::move(keys), .value = std::move(value)};
}

class StoreServiceTest : public testing::Test {
  protected:
    void greet(int id) {
        clients_.try_emplace(id, service_, id);
        send(id, {.kind = Kind::hello, .number = hello_number, .keys = {}, .value = {}});
        ASSERT_EQ(replies_to(id), std::vector<Reply>{{}});
    }
    void send(int id, const StoreRequest& request) { client(id).handle_bytes(encode(request)); }
    StoreClient& client(int id) { return clients_.at(id); }
    int next_with_output() {
        const StoreClient* const next = service_.poll_output();
        return next == nullptr ? 0 : next->id();
    }

    // Takes the replies out of the service.
    std::vector<Reply> replies_to(int id) {
        MessageReader reader;
        reader.append(client(id).output());
        client(id).sent(client(id).output().size());
        std::vector<Reply> replies;
        for (auto next = reader.next(); next && next->has_value(); next = reader.next()) {
            replies.push_back(*decode_reply(**next));
        }
        return replies;
    }
    StoreStatus last_status(int id) {
        const auto replies = replies_to(id);
        if (replies.empty()) return StoreStatus::done;
        return replies.back().status;
    }

    StoreService service_{{.keys = 10, .bytes = 200'000}};
    std::map<int, StoreClient> clients_;
};

TEST_F(StoreServiceTest, ClientWithoutAHelloIsDisconnected) {
    clients_.try_emplace(1, service_, 1);
    EXPECT_TRUE(client(1).owes_bytes());
    send(1, request(Kind::get, {"key"}));
    EXPECT_TRUE(client(1).finished());
    EXPECT_EQ(last_status(1), StoreStatus::malformed);
    send(1, {.kind = Kind::hello, .number = hello_number, .keys = {}, .value = {}});
    EXPECT_TRUE(replies_to(1).empty()) << "its further input is ignored";
}

TEST_F(StoreServiceTest, SetAnswersEveryWaiter) {
    for (const int id : {1, 2, 3}) greet(id);
    while (next_with_output() != 0) continue;
    send(1, request(Kind::get, {"a", "b"}));
    send(2, request(Kind::wait, {"b"}));
    EXPECT_EQ(next_with_output(), 0);
    send(3, request(Kind::set, {"a"}, "1"));
    EXPECT_EQ(next_with_output(), 3);
    EXPECT_EQ(next_with_output(), 0);
    EXPECT_EQ(replies_to(3), std::vector<Reply>{{}});
    send(3, request(Kind::set, {"b"}, "2"));
    EXPECT_EQ(replies_to(1), (std::vector<Reply>{{.fields = {"1", "2"}}}));
    EXPECT_EQ(replies_to(2), std::vector<Reply>{{}});
}

TEST_F(StoreServiceTest, RemovedKeyKeepsItsWaiterWaiting) {
    greet(1);
    greet(2);
    send(1, request(Kind::get, {"a", "b"}));
    send(2, request(Kind::set, {"a"}, "old"));
    ASSERT_EQ(last_status(2), StoreStatus::done);
    send(2, request(Kind::remove, {"a"}));
    EXPECT_EQ(replies_to(2), (std::vector<Reply>{{.number = 1, .fields = {}}}));
    send(2, request(Kind::set, {"b"}, "2"));
    ASSERT_EQ(last_status(2), StoreStatus::done);
    EXPECT_TRUE(replies_to(1).empty());
    send(2, request(Kind::set, {"a"}, "new"));
    EXPECT_EQ(replies_to(1), (std::vector<Reply>{{.fields = {"new", "2"}}}));
}

TEST_F(StoreServiceTest, CancelReturnsTheMissingKeysAndIsIgnoredIfNoRequestIsPending) {
    greet(1);
    greet(2);
    send(1, request(Kind::wait, {"a", "b"}));
    send(2, request(Kind::set, {"a"}));
    send(1, request(Kind::cancel));
    EXPECT_EQ(replies_to(1), (std::vector<Reply>{{.status = StoreStatus::cancelled, .number = 0, .fields = {"b"}}}));
    send(1, request(Kind::cancel));
    EXPECT_TRUE(replies_to(1).empty());
    EXPECT_FALSE(client(1).finished());
    ASSERT_EQ(last_status(2), StoreStatus::done);
    send(2, request(Kind::set, {"b"}));
    EXPECT_TRUE(replies_to(1).empty()) << "it no longer waits";
    EXPECT_TRUE(service_.consistent());
}

TEST_F(StoreServiceTest, SecondRequestBeforeTheAnswerDisconnectsTheClient) {
    greet(1);
    send(1, request(Kind::wait, {"a"}));
    send(1, request(Kind::set, {"a"}));
    EXPECT_TRUE(client(1).finished());
    EXPECT_EQ(last_status(1), StoreStatus::malformed);
    EXPECT_EQ(service_.table().keys(), 0U);
    greet(2);
    for (int i = 0; i < 1000; ++i) send(2, request(Kind::missing, {"a"}));
    EXPECT_TRUE(client(2).finished()) << "it does not read its answers";
    EXPECT_LT(client(2).output().size(), 1000U);
}

TEST_F(StoreServiceTest, FaultOfOneClientDoesNotDisconnectTheOthers) {
    greet(1);
    greet(2);
    send(1, request(Kind::get, {"a"}));
    client(2).handle_bytes(std::string(100, '\xFF'));
    EXPECT_TRUE(client(2).finished());
    EXPECT_EQ(last_status(2), StoreStatus::too_large);
    clients_.erase(2);
    greet(3);
    send(3, request(Kind::set, {"a"}, "x"));
    EXPECT_EQ(replies_to(1), (std::vector<Reply>{{.fields = {"x"}}}));
}

TEST_F(StoreServiceTest, ClientThatLeavesWhileWaitingIsForgotten) {
    greet(1);
    send(1, request(Kind::wait, {"a", "b", "a"}));
    clients_.erase(1);
    EXPECT_TRUE(service_.consistent());
    greet(1);
    greet(2);
    for (const char* const key : {"a", "b"}) {
        send(2, request(Kind::set, {key}));
        ASSERT_EQ(last_status(2), StoreStatus::done);
    }
    EXPECT_TRUE(replies_to(1).empty()) << "the next client of that number waits for nothing";
}

TEST_F(StoreServiceTest, GetReturnsAsManyValuesAsFitOneMessage) {
    greet(1);
    const std::string large(max_value_bytes, 'v');
    for (const char* const key : {"a", "b"}) {
        send(1, request(Kind::set, {key}, large));
        ASSERT_EQ(last_status(1), StoreStatus::done);
    }
    send(1, request(Kind::set, {"c"}, "small"));
    ASSERT_EQ(last_status(1), StoreStatus::done);
    send(1, request(Kind::get, {"a", "b"}));
    EXPECT_EQ(replies_to(1), (std::vector<Reply>{{.fields = {large}}}));
    send(1, request(Kind::get, {"a", "c"}));
    EXPECT_EQ(replies_to(1), (std::vector<Reply>{{.fields = {large, "small"}}}));
}

TEST_F(StoreServiceTest, FullTableIsReportedAndTheClientKept) {
    greet(1);
    for (int i = 0; i < 10; ++i) {
        send(1, request(Kind::set, {std::to_string(i)}));
        ASSERT_EQ(last_status(1), StoreStatus::done);
    }
    send(1, request(Kind::set, {"more"}));
    EXPECT_EQ(last_status(1), StoreStatus::exhausted);
    EXPECT_FALSE(client(1).finished());
}

}  // namespace
}  // namespace atp::store
