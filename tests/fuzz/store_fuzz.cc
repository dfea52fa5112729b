// SPDX-License-Identifier: Apache-2.0
// The clients of a store send arbitrary bytes. An accepted message encodes to the same bytes, and every answer decodes.
// No client waits for keys that exist, and the memory that the service uses for a client is bounded.
//
// An input is a sequence of steps of three clients: a whole message, a part of a message, arbitrary bytes, a close or a
// pause.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "input.h"
#include "require.h"
#include "store/store_service.h"

namespace atp::fuzz {
namespace {

constexpr std::uint32_t clients = 3;
constexpr std::size_t most_steps = 500;
constexpr store::StoreLimits limits{.keys = 5, .bytes = 200};

std::string some_text(Input& input, std::size_t most) {
    std::string text;
    for (const std::byte byte : input.some_bytes(most)) text.push_back(static_cast<char>(byte));
    return text;
}

store::StoreRequest some_request(Input& input) {
    store::StoreRequest request;
    request.kind = static_cast<store::Kind>(input.below(9));
    const std::uint32_t keys = request.kind == store::Kind::cancel ? 0 : 1 + input.below(3);
    for (std::uint32_t at = 0; at < keys; ++at) request.keys.emplace_back(1, static_cast<char>('a' + input.below(4)));
    if (request.kind == store::Kind::set) {
        request.keys.resize(1);
        request.value = some_text(input, 100);
    } else if (request.kind == store::Kind::add) {
        request.keys.resize(1);
        request.number = static_cast<std::int64_t>(std::uint64_t{input.word()} << 32);
    } else if (request.kind == store::Kind::remove) {
        request.keys.resize(1);
    }
    return request;
}

void require_canonical(std::string_view message) {
    const auto again = [](const auto& decoded) { return store::encode(decoded).substr(store::length_bytes); };
    if (const auto request = store::decode_request(message)) {
        require(again(*request) == message, "an accepted request encodes to the same bytes");
    }
    if (const auto reply = store::decode_reply(message)) {
        require(again(*reply) == message, "an accepted reply encodes to the same bytes");
    }
}

class Story {
  public:
    explicit Story(Input& input) : input_(input) {}

    void run() {
        for (std::size_t step = 0; !input_.empty() && step < most_steps; ++step) {
            const int id = static_cast<int>(input_.below(clients));
            switch (input_.below(8)) {
                case 0: clients_.erase(id); break;
                case 1: notify(id, some_text(input_, 200)); break;
                case 2: notify(id, store::encode(some_request(input_)).substr(0, input_.below(40))); break;
                case 3: greet(id); break;
                default: notify(id, store::encode(some_request(input_))); break;
            }
            require(service_.table().keys() <= limits.keys, "the number of keys is within the limit");
            require(service_.table().bytes() <= limits.bytes, "the number of bytes is within the limit");
            require(service_.consistent(), "no client waits for keys that exist");
            if (input_.below(4) != 0) take_replies();
        }
    }

  private:
    void greet(int id) {
        clients_.try_emplace(id, service_, id);
        notify(id, store::encode({.kind = store::Kind::hello, .number = store::hello_number, .keys = {}, .value = {}}));
    }

    void notify(int id, const std::string& bytes) {
        if (bytes.size() > store::length_bytes) require_canonical(std::string_view(bytes).substr(store::length_bytes));
        require_canonical(bytes);
        const auto client = clients_.find(id);
        if (client == clients_.end()) return;
        client->second.handle_bytes(bytes);
        require(client->second.output().size() <= 3 * (store::max_message_bytes + store::length_bytes),
                "the output for a client is at most three messages");
    }

    void take_replies() {
        while (store::StoreClient* const client = service_.poll_output()) {
            store::MessageReader reader;
            reader.append(client->output());
            client->sent(client->output().size());
            for (auto next = reader.next();; next = reader.next()) {
                require(next.has_value(), "the output can be split into replies");
                if (!next->has_value()) break;
                require(store::decode_reply(**next).has_value(), "every reply decodes");
            }
            require(!reader.halfway(), "the output ends with a whole reply");
        }
    }

    Input& input_;
    store::StoreService service_{limits};
    std::map<int, store::StoreClient> clients_;
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
