// SPDX-License-Identifier: Apache-2.0
#include "store/store_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace atp::store {
namespace {

Reply to_reply(const StoreRefusal& refusal) {
    return {.status = refusal.status, .number = 0, .fields = {refusal.text}};
}

}  // namespace

StoreClient* StoreService::poll_output() {
    if (with_output_.empty()) return nullptr;
    StoreClient* const client = with_output_.front();
    with_output_.pop_front();
    return client;
}

// A waiting client is looked at when the first key that it lacked has come, and not for its other keys.
void StoreService::key_came(std::string_view key) {
    for (StoreClient* const client : clients_) {
        if (client->pending_ && client->awaited_ == key) client->answer_or_wait();
    }
}

std::vector<std::string> StoreService::absent(const std::vector<std::string>& keys) const {
    std::vector<std::string> names;
    std::ranges::copy_if(keys, std::back_inserter(names),
                         [this](const std::string& key) { return table_.find(key) == nullptr; });
    return names;
}

Reply StoreService::values_of(const std::vector<std::string>& keys) const {
    Reply reply;
    std::size_t bytes = bare_reply_bytes;
    for (const std::string& key : keys) {
        const std::string* const value = table_.find(key);
        bytes += field_overhead_bytes + value->size();
        if (bytes > max_message_bytes) break;
        reply.fields.push_back(*value);
    }
    return reply;
}

bool StoreService::consistent() const {
    return std::ranges::all_of(clients_, [this](const StoreClient* client) {
        return !client->pending_ || (!client->finished_ && table_.find(client->awaited_) == nullptr);
    });
}

StoreClient::StoreClient(StoreService& service, int id) : service_(service), id_(id) {
    service_.clients_.push_back(this);
}

StoreClient::~StoreClient() {
    std::erase(service_.clients_, this);
    std::erase(service_.with_output_, this);
}

void StoreClient::handle_bytes(std::string_view bytes) {
    if (finished_) return;
    reader_.append(bytes);
    while (!finished_) {
        const auto message = reader_.next();
        if (!message) return turn_away(message.error());
        if (!message->has_value()) return;
        auto request = decode_request(**message);
        if (!request) return turn_away(request.error());
        handle_request(*std::move(request));
    }
}

void StoreClient::handle_request(StoreRequest request) {
    if (greeted_ == (request.kind == Kind::hello)) {
        return turn_away(
            {StoreStatus::malformed, "the first request of a connection must be 'hello', and only the first"});
    }
    if (request.kind == Kind::cancel) return cancel();
    asked_ = request.kind != Kind::hello;
    // The protocol requires that a client reads each reply before its next request. This bounds the memory per client.
    if (pending_ || !output_.empty()) {
        return turn_away({StoreStatus::malformed, "the client sent a request before the reply to the last one"});
    }
    switch (request.kind) {
        case Kind::hello: greeted_ = true; return reply({});
        case Kind::set:
        case Kind::add: return change_table(request);
        case Kind::get:
        case Kind::wait: pending_ = std::move(request); return answer_or_wait();
        case Kind::missing: return reply({.fields = service_.absent(request.keys)});
        case Kind::remove: {
            const std::size_t removed = service_.table_.remove(request.keys.front());
            return reply({.number = static_cast<std::int64_t>(removed), .fields = {}});
        }
        case Kind::cancel: return;
    }
}

void StoreClient::change_table(const StoreRequest& request) {
    const std::string& key = request.keys.front();
    Outcome<std::int64_t> changed = 0;
    if (request.kind == Kind::add) {
        changed = service_.table_.add(key, request.number);
    } else if (const auto stored = service_.table_.set(key, request.value); !stored) {
        changed = tl::unexpected<StoreRefusal>(stored.error());
    }
    if (!changed) return reply(to_reply(changed.error()));
    reply({.number = *changed, .fields = {}});
    service_.key_came(key);
}

// Checks all keys again: a key that was set earlier may have been removed before the last key was set.
void StoreClient::answer_or_wait() {
    const auto missing = std::ranges::find_if(
        pending_->keys, [this](const std::string& key) { return service_.table_.find(key) == nullptr; });
    if (missing != pending_->keys.end()) {
        awaited_ = *missing;
        return;
    }
    const StoreRequest request = *std::exchange(pending_, std::nullopt);
    reply(request.kind == Kind::get ? service_.values_of(request.keys) : Reply{});
}

void StoreClient::cancel() {
    if (!pending_) return;
    const StoreRequest request = *std::exchange(pending_, std::nullopt);
    reply({.status = StoreStatus::cancelled, .number = 0, .fields = service_.absent(request.keys)});
}

void StoreClient::turn_away(const StoreRefusal& refusal) {
    pending_.reset();
    finished_ = true;
    reader_ = {};
    reply(to_reply(refusal));
}

void StoreClient::reply(const Reply& reply) {
    output_ += encode(reply);
    service_.with_output_.push_back(this);
}

}  // namespace atp::store
