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

void StoreService::open(ClientId id) { clients_.try_emplace(id); }

void StoreService::close(ClientId id) {
    const auto at = clients_.find(id);
    if (at == clients_.end()) return;
    stop_waiting(id, at->second);
    clients_.erase(at);
    std::erase(with_output_, id);
}

void StoreService::handle_bytes(ClientId id, std::string_view bytes) {
    const auto at = clients_.find(id);
    if (at == clients_.end()) return;
    Client& client = at->second;
    if (client.finished) return;
    client.reader.append(bytes);
    while (!client.finished) {
        const auto message = client.reader.next();
        if (!message) return refuse_and_finish(id, client, message.error());
        if (!message->has_value()) return;
        auto request = decode_request(**message);
        if (!request) return refuse_and_finish(id, client, request.error());
        handle_request(id, client, *std::move(request));
    }
}

void StoreService::handle_request(ClientId id, Client& client, StoreRequest request) {
    if (client.greeted == (request.kind == Kind::hello)) {
        return refuse_and_finish(
            id, client,
            {StoreStatus::malformed, "the first request of a connection must be 'hello', and only the first"});
    }
    if (request.kind == Kind::cancel) return cancel(id, client);
    // The protocol requires that a client reads each reply before its next request. This bounds the memory per client.
    if (client.pending || !client.output.empty()) {
        return refuse_and_finish(
            id, client, {StoreStatus::malformed, "the client sent a request before the reply to the last one"});
    }
    switch (request.kind) {
        case Kind::hello: client.greeted = true; return reply(id, client, {});
        case Kind::set:
        case Kind::add: return change_table(id, client, request);
        case Kind::get:
        case Kind::wait: client.pending = std::move(request); return answer_or_wait(id, client);
        case Kind::missing: return reply(id, client, {.fields = absent(request.keys)});
        case Kind::remove: {
            const std::size_t removed = table_.remove(request.keys.front());
            return reply(id, client, {.number = static_cast<std::int64_t>(removed), .fields = {}});
        }
        case Kind::cancel: return;
    }
}

void StoreService::change_table(ClientId id, Client& client, const StoreRequest& request) {
    const std::string& key = request.keys.front();
    Outcome<std::int64_t> changed = 0;
    if (request.kind == Kind::add) {
        changed = table_.add(key, request.number);
    } else if (const auto stored = table_.set(key, request.value); !stored) {
        changed = tl::unexpected<StoreRefusal>(stored.error());
    }
    if (!changed) return reply(id, client, to_reply(changed.error()));
    reply(id, client, {.number = *changed, .fields = {}});
    key_came(key);
}

void StoreService::key_came(const std::string& key) {
    const auto at = waiting_.find(key);
    if (at == waiting_.end()) return;
    const std::vector<ClientId> waiters = std::move(at->second);
    waiting_.erase(at);
    for (const ClientId waiter : waiters) {
        Client& client = clients_.at(waiter);
        if (--client.absent == 0) answer_or_wait(waiter, client);
    }
}

// Checks all keys again: a key that was set earlier may have been removed before the last key was set.
void StoreService::answer_or_wait(ClientId id, Client& client) {
    client.absent = 0;
    for (const std::string& key : client.pending->keys) {
        if (table_.find(key) != nullptr) continue;
        waiting_[key].push_back(id);
        ++client.absent;
    }
    if (client.absent > 0) return;
    const StoreRequest request = *std::exchange(client.pending, std::nullopt);
    reply(id, client, request.kind == Kind::get ? values_of(request.keys) : Reply{});
}

void StoreService::cancel(ClientId id, Client& client) {
    if (!client.pending) return;
    Reply cancelled{.status = StoreStatus::cancelled, .number = 0, .fields = absent(client.pending->keys)};
    stop_waiting(id, client);
    reply(id, client, cancelled);
}

void StoreService::stop_waiting(ClientId id, Client& client) {
    if (!client.pending) return;
    for (const std::string& key : client.pending->keys) {
        const auto at = waiting_.find(key);
        if (at == waiting_.end()) continue;
        std::erase(at->second, id);
        if (at->second.empty()) waiting_.erase(at);
    }
    client.pending.reset();
    client.absent = 0;
}

void StoreService::turn_away(ClientId id, const StoreRefusal& refusal) {
    const auto at = clients_.find(id);
    if (at != clients_.end()) refuse_and_finish(id, at->second, refusal);
}

void StoreService::refuse_and_finish(ClientId id, Client& client, const StoreRefusal& refusal) {
    stop_waiting(id, client);
    client.finished = true;
    client.reader = {};
    reply(id, client, to_reply(refusal));
}

void StoreService::reply(ClientId id, Client& client, const Reply& reply) {
    client.output += encode(reply);
    with_output_.push_back(id);
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

std::optional<StoreService::ClientId> StoreService::poll_output() {
    if (with_output_.empty()) return std::nullopt;
    const ClientId id = with_output_.front();
    with_output_.pop_front();
    return id;
}

std::string_view StoreService::output(ClientId id) const {
    const auto at = clients_.find(id);
    return at == clients_.end() ? std::string_view{} : std::string_view(at->second.output);
}

void StoreService::sent(ClientId id, std::size_t bytes) {
    const auto at = clients_.find(id);
    if (at != clients_.end()) at->second.output.erase(0, bytes);
}

bool StoreService::finished(ClientId id) const {
    const auto at = clients_.find(id);
    return at == clients_.end() || at->second.finished;
}

bool StoreService::owes_bytes(ClientId id) const {
    const auto at = clients_.find(id);
    if (at == clients_.end() || at->second.finished) return false;
    return !at->second.greeted || at->second.reader.halfway();
}

bool StoreService::consistent() const {
    std::unordered_map<ClientId, std::size_t> found;
    for (const auto& [key, waiters] : waiting_) {
        if (waiters.empty() || table_.find(key) != nullptr) return false;
        for (const ClientId waiter : waiters) ++found[waiter];
    }
    const auto knows = [&found](const auto& entry) {
        const auto& [id, client] = entry;
        const auto at = found.find(id);
        const std::size_t absent = at == found.end() ? 0 : at->second;
        const bool waits = client.pending.has_value();
        return absent == client.absent && waits == (absent > 0) && !(waits && client.finished);
    };
    const auto is_open = [this](const auto& entry) { return clients_.contains(entry.first); };
    return std::ranges::all_of(clients_, knows) && std::ranges::all_of(found, is_open);
}

}  // namespace atp::store
