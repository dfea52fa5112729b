// SPDX-License-Identifier: Apache-2.0
#include "code_vectors.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "crypto/tenant_key.h"
#include "support/control_messages.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

using control::Direction;
using testing::join_of_worker;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t boot = 0x6A6B6C6D6E6F7071;
const std::string leaf = "leaf-3";

control::SessionCode session(const std::string& name, std::uint64_t nonce, std::uint64_t started,
                             const control::ChannelKey& channel) {
    crypto::SecretKey key;
    for (std::size_t at = 0; at < crypto::SecretKey::size; ++at) key.bytes()[at] = static_cast<std::byte>(at);
    return {crypto::derive(key, crypto::for_join, name), nonce, started, channel};
}

template <class Part>
CodeVector coded(std::string description, const wire::JoiningMessage& message, const Part& part, Direction direction,
                 const std::string& name = leaf) {
    CodeVector vector{.description = std::move(description), .name = name, .boot = boot, .direction = direction};
    vector.bytes.resize(1024);
    const std::size_t bare = control::encode_bare(message, vector.bytes);
    const auto channel = control::key_of_message(vector.bytes);
    const auto code = session(name, *wire::nonce_of(vector.bytes), boot, *channel);
    const std::size_t size = code.append(part, direction, vector.bytes, bare);
    vector.bytes.resize(control::pad(vector.bytes, size, wire::least_bytes_of(message, 0)));
    return vector;
}

CodeVector changed(std::string description, CodeVector vector, std::size_t at, bool right = false) {
    vector.description = std::move(description);
    vector.bytes[at] ^= std::byte{1};
    vector.right = right;
    return vector;
}

wire::Join a_join() {
    wire::Join join = join_of_worker();
    join.cookie = 0x6162636465666768;
    join.epoch = 2;
    return join;
}

wire::Join join_of_leaf() {
    wire::Join join = a_join();
    join.level = 1;
    join.begun = true;
    join.units = {{.unit = 1, .members = 0x7, .mask0 = 0x7, .direct = false, .ranks = {0, 5, 9}}};
    return join;
}

template <class Message>
Message answer() {
    const wire::Join join = a_join();
    return {.nonce = join.nonce, .job = join.terms.job, .token = join.terms.token, .channel = join.terms.channel};
}

}  // namespace

bool has_right_code(std::span<const std::byte> message, const std::string& name, std::uint64_t started,
                    Direction direction) {
    const auto channel = control::key_of_message(message);
    if (!channel) return false;
    const auto code = session(name, *wire::nonce_of(message), started, *channel);
    switch (wire::control_type(message).value_or(wire::ControlType::retry)) {
        case wire::ControlType::join:
            if (const auto part = wire::code_of<wire::JoinCode>(message)) return code.fits(*part, direction);
            return false;
        case wire::ControlType::joined:
            if (const auto part = wire::code_of<wire::JoinedCode>(message)) return code.fits(*part, direction);
            return false;
        default:
            if (const auto part = wire::code_of<wire::PlainCode>(message)) return code.fits(*part, direction);
            return false;
    }
}

std::vector<CodeVector> code_vectors() {
    auto joined = answer<wire::Joined>();
    joined.epoch = 2, joined.number = 1, joined.ready = true, joined.hold_ms = 3000;
    auto refused = answer<wire::Refused>();
    refused.reason = wire::Refusal::full, refused.text = "no room";
    auto leave = answer<wire::Leave>();
    leave.epoch = 3, leave.unit = 2, leave.member = 2;
    const wire::JoinCode of_worker{.key = 7, .charged = 0, .name = leaf};
    const wire::JoinCode of_leaf{.key = 9, .charged = 7, .name = "spine"};
    const wire::JoinedCode next{.cookie = 0x7172737475767778, .boot = boot, .key = 7, .charged = 7};

    std::vector<CodeVector> vectors{
        coded("a worker joins", a_join(), of_worker, Direction::up),
        coded("a leaf joins for a tenant", join_of_leaf(), of_leaf, Direction::up, "spine"),
        coded("a worker joins a server in a rank", a_join(), wire::JoinCode{.key = 7, .name = "*"}, Direction::up, "*"),
        coded("joined", joined, next, Direction::down),
        coded("refused", refused, wire::PlainCode{}, Direction::down),
        coded("a worker leaves with a code", leave, wire::PlainCode{}, Direction::up),
    };
    const CodeVector join = vectors.front();
    const CodeVector answered = vectors[3];
    vectors.push_back(changed("a switch in the path sets int32_path", join, wire::int32_path_at, true));
    vectors.push_back(changed("padding differs", join, join.bytes.size() - 1, true));
    vectors.push_back(changed("another epoch", join, 118));
    vectors.push_back(changed("another cookie after joined", answered, answered.bytes.size() - 33));
    vectors.push_back(changed("another charged key after joined", answered, answered.bytes.size() - 17));
    CodeVector restarted = join;
    restarted.description = "the switch has restarted";
    restarted.boot = boot + 1;
    restarted.right = false;
    vectors.push_back(restarted);
    CodeVector returned = vectors[4];
    returned.description = "a refusal comes back to the switch";
    returned.direction = Direction::up;
    returned.right = false;
    vectors.push_back(returned);
    return vectors;
}

nlohmann::ordered_json to_json(const CodeVector& vector) {
    const SpeltBytes spelt = spell(vector.bytes, 1024);
    return {{"description", vector.description},
            {"name", vector.name},
            {"boot", vector.boot},
            {"direction", vector.direction == Direction::up ? "up" : "down"},
            {"right", vector.right},
            {"hex", spelt.hex}};
}

}  // namespace atp::conformance
