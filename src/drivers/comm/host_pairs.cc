// SPDX-License-Identifier: Apache-2.0
#include "comm/host_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <sstream>

#include "comm/root_servers.h"
#include "comm/switch_reach.h"
#include "net/clock.h"

namespace atp::comm {
namespace {

// What a rank found on the path to another one.
struct PathAnswer {
    std::uint32_t to = 0;
    std::uint32_t lanes = 0;  // 0: no answer
    std::string why{};
};

// A line for each answer.
std::string to_text(std::vector<PathAnswer> answers) {
    std::string text;
    for (PathAnswer& answer : answers) {
        std::ranges::replace(answer.why, '\n', ' ');
        text += fmt::format("{} {} {}\n", answer.to, answer.lanes, answer.why);
    }
    return text;
}

std::vector<PathAnswer> answers_of(const std::string& text) {
    std::vector<PathAnswer> answers;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        PathAnswer answer;
        std::istringstream words(line);
        words >> answer.to >> answer.lanes >> std::ws;
        std::getline(words, answer.why);
        answers.push_back(std::move(answer));
    }
    return answers;
}

PathAnswer ask(std::uint32_t to, const std::string& text, Time deadline) {
    const auto address = wire::Address::parse(text);
    if (!address) return {.to = to, .why = to_string(address.error())};
    const auto reach = reach_address(*address, Options{}, deadline);
    if (!reach) return {.to = to, .why = reach.error().text};
    return {.to = to, .lanes = reach->lanes};
}

void add_to(PairFacts& facts, std::uint32_t from, const std::vector<PathAnswer>& answers) {
    for (const PathAnswer& answer : answers) {
        if (answer.lanes == 0) {
            facts.faults.push_back({.from = from, .to = answer.to, .why = answer.why});
        } else {
            facts.lanes = facts.lanes == 0 ? answer.lanes : std::min(facts.lanes, answer.lanes);
        }
    }
}

}  // namespace

Result<PairFacts> measure_pairs(store::Rendezvous& rendezvous, const std::string& listen, Duration timeout,
                                Time deadline) {
    const std::uint32_t own = rendezvous.party().rank;
    const auto node = serve_at(listen, {});
    const auto addresses =
        rendezvous.all_gather("pair-addresses", node ? to_string((*node)->address()) : std::string(), deadline);
    if (!addresses) return tl::unexpected(addresses.error());

    std::vector<std::future<PathAnswer>> asked;
    const Time until = std::min(deadline, net::after(net::now(), timeout));
    for (std::uint32_t rank = 0; rank < addresses->size(); ++rank) {
        if (rank == own || (*addresses)[rank].empty()) continue;
        asked.push_back(std::async(std::launch::async, ask, rank, (*addresses)[rank], until));
    }
    std::vector<PathAnswer> answers;
    if (!node) answers.push_back({.to = own, .why = to_string(node.error())});
    for (auto& answer : asked) answers.push_back(answer.get());
    const auto all = rendezvous.all_gather("pair-answers", to_text(answers), deadline);
    if (!all) return tl::unexpected(all.error());

    PairFacts facts{.addresses = *addresses, .faults = {}};
    for (std::uint32_t rank = 0; rank < all->size(); ++rank) add_to(facts, rank, answers_of((*all)[rank]));
    return facts;
}

}  // namespace atp::comm
