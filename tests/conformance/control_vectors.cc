// SPDX-License-Identifier: Apache-2.0
#include "control_vectors.h"

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "support/control_messages.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

using Bytes = std::vector<std::byte>;
using Json = nlohmann::ordered_json;
using testing::encoded;
using testing::join_of_worker;

template <class Message>
Message but(Message message, void (*change)(Message&)) {
    change(message);
    return message;
}

wire::Join join_of_listener() {
    wire::Join join = join_of_worker();
    join.terms.group.family = 4;
    join.terms.group.port = 4792;
    join.terms.group.host = {std::byte{239}, std::byte{192}, std::byte{7}, std::byte{8}};
    return join;
}

wire::Join join_of_switchml() {
    wire::Join join = join_of_worker();
    join.terms.audit = false;
    join.terms.aggregators = 4096;
    join.terms.mask1 = 0x1;
    join.units = {{.unit = 0, .members = 0x4, .mask0 = 0xF, .direct = false, .ranks = {2}}};
    return join;
}

wire::Join join_of_rack() {
    wire::Join join = join_of_worker();
    join.level = 1;
    join.begun = true;
    join.units = {{.unit = 1, .members = 0x7, .mask0 = 0x7, .direct = false, .ranks = {0, 5, 9}}};
    return join;
}

wire::Join join_of_direct_worker() {
    wire::Join join = join_of_worker();
    join.level = 1;
    join.units = {{.unit = 0, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {6}}};
    return join;
}

wire::Join join_of_last_switch() {
    wire::Join join = join_of_worker();
    join.level = 2;
    join.terms.server.family = 4;
    join.terms.server.port = 4791;
    join.terms.server.host = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{7}};
    join.units = {{.unit = 0, .members = 0x3, .mask0 = 0x3, .direct = false, .ranks = {0, 1}},
                  {.unit = 1, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {2}},
                  {.unit = 2, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {3}}};
    return join;
}

wire::Welcome welcome() {
    return {.nonce = 0x1122334455667788,
            .received_bytes = 1472,
            .path = {{.id = 0xAABBCCDDEEFF0011, .aggregators = 4096, .lanes = 256},
                     {.id = 1, .aggregators = 1024, .lanes = 62}},
            .software = "atp 0.1.0"};
}

const wire::Joined joined{.nonce = 0x2122232425262728,
                          .job = 0x01020304,
                          .token = 0x5EEDFACE01234567,
                          .channel = 0x0A0B,
                          .epoch = 0x31323334,
                          .number = 0x41424344,
                          .group_number = 0x5152535455565758,
                          .ready = false,
                          .missing_units = 0x4,
                          .missing_members = 0x9};

std::array<std::byte, 16> a_ticket() {
    std::array<std::byte, 16> ticket{};
    for (std::size_t at = 0; at < ticket.size(); ++at) ticket[at] = static_cast<std::byte>(0x70 + at);
    return ticket;
}

wire::Refused refused() {
    return {.nonce = 0x2122232425262728,
            .job = 0x01020304,
            .token = 0x5EEDFACE01234567,
            .channel = 0x0A0B,
            .reason = wire::Refusal::terms,
            .text = "members differ"};
}

const wire::Leave leave{.nonce = 0x2122232425262728,
                        .job = 0x01020304,
                        .token = 0x5EEDFACE01234567,
                        .channel = 0x0A0B,
                        .epoch = 0x31323334,
                        .unit = 2,
                        .member = 3};
const wire::Retry retry{.nonce = 0x2122232425262728,
                        .job = 0x01020304,
                        .token = 0x5EEDFACE01234567,
                        .channel = 0x0A0B,
                        .cookie = 0x6162636465666768};
constexpr wire::Stats stats{.nonce = 0x2122232425262728, .snapshot = 7, .part = 2, .cookie = 0x7172737475767778};

// The switch at 10.0.0.1:4790, whose process ended.
wire::Edge leaf_edge() {
    wire::Edge edge{.kind = wire::EdgeKind::leaf,
                    .evidence = wire::Evidence::closed,
                    .unit = 2,
                    .silent_ms = 612,
                    .at = {.family = 4, .port = 4790}};
    edge.at.host = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
    return edge;
}

constexpr wire::Edge member_edge{
    .kind = wire::EdgeKind::member, .evidence = wire::Evidence::silence, .unit = 2, .member = 3, .silent_ms = 3000};
constexpr wire::Edge path_edge{.kind = wire::EdgeKind::path_mtu,
                               .evidence = wire::Evidence::too_long,
                               .unit = 2,
                               .member = 3,
                               .silent_ms = 400,
                               .detail = 1000};

std::vector<wire::Statement> statements() {
    return {{.count = 3, .unit = 2, .member = 0, .text = "all_reduce of 20000 float32"},
            {.count = 1, .unit = 2, .member = 3, .text = "barrier"}};
}

wire::Report report() {
    return {.nonce = 0x2122232425262728, .snapshot = 7, .part = 2, .parts = 3, .text = R"({"lanes":62})"};
}

class Table {
  public:
    void accepted(std::string description, Bytes bytes) {
        std::string fields = control_fields(bytes).value_or("");
        rows_.push_back({std::move(description), std::move(bytes), true, std::move(fields)});
    }
    void refused(std::string description, Bytes bytes) {
        rows_.push_back({std::move(description), std::move(bytes), false, {}});
    }
    template <class Message>
    void accepted(std::string description, const Message& message, std::type_identity_t<void (*)(Message&)> change) {
        accepted(std::move(description), encoded(but(message, change)));
    }
    template <class Message>
    void refused(std::string description, const Message& message, std::type_identity_t<void (*)(Message&)> change) {
        refused(std::move(description), encoded(but(message, change)));
    }
    void cut(std::string description, Bytes bytes) {
        bytes.pop_back();
        refused(std::move(description), std::move(bytes));
    }
    std::vector<ControlVector> take() { return std::move(rows_); }

  private:
    std::vector<ControlVector> rows_;
};

void add_refusals(Table& table) {
    for (unsigned reason = 1; reason <= static_cast<unsigned>(wire::Refusal::unsupported); ++reason) {
        wire::Refused message = refused();
        message.reason = static_cast<wire::Refusal>(reason);
        table.accepted("a refusal: " + std::string(wire::to_string(message.reason)), encoded(message));
    }
}

void add_good_joins(Table& table) {
    table.accepted("a worker joins at the switch of its rack", encoded(join_of_worker()));
    table.accepted("a rack's switch, which was ready before, joins at the root", encoded(join_of_rack()));
    table.accepted("a direct worker joins at the root", encoded(join_of_direct_worker()));
    table.accepted("a worker joins at the root as one of a rack", join_of_worker(), [](auto& join) { join.level = 1; });
    table.accepted("the last switch joins at a server elsewhere, over IPv4", encoded(join_of_last_switch()));
    table.accepted("the last switch joins at a server elsewhere, over IPv6", join_of_last_switch(), [](auto& join) {
        join.terms.server.family = 6;
        join.terms.server.host.back() = std::byte{1};
    });
    table.accepted("a worker joins that wants results by multicast", encoded(join_of_listener()));
    table.accepted("a worker joins that hears its group", join_of_listener(),
                   [](auto& join) { join.receives_group = true; });
    table.accepted("a worker joins whose path adds int32 alone", join_of_worker(),
                   [](auto& join) { join.int32_path = true; });
    table.accepted("a worker joins that wants results by multicast over IPv6", join_of_listener(), [](auto& join) {
        join.terms.group.family = 6;
        join.terms.group.host = {std::byte{0xFF}, std::byte{0x18}};
    });
    table.accepted("a rack's switch joins that lost a member", join_of_rack(),
                   [](auto& join) { join.edges = {member_edge}; });
    table.accepted("a worker joins with the ticket of an earlier process of its switch", join_of_worker(),
                   [](auto& join) {
                       join.begun = true;
                       join.ticket = a_ticket();
                   });
    table.accepted("a worker joins and states what it called", join_of_worker(),
                   [](auto& join) { join.statements = {{.count = 1, .unit = 2, .member = 3, .text = "barrier"}}; });
    table.accepted("a worker joins whose job has a name", join_of_worker(),
                   [](auto& join) { join.job_name = "resnet-50"; });
    table.accepted("a rack's switch joins, and its member 3 is the last", join_of_rack(), [](auto& join) {
        join.pace = {.share_percent = 99, .last_percent = 97, .unit = 2, .member = 3, .waited_permille = 412};
    });
}

void add_good(Table& table) {
    add_good_joins(table);
    table.accepted("the others wait for a unit", joined, [](auto& message) {
        message.pace = {
            .share_percent = 100, .last_percent = 100, .unit = 31, .whole_unit = true, .waited_permille = 1000};
    });
    table.accepted("the process of a leaf ended", joined, [](auto& message) {
        message.hold_ms = 3000;
        message.edges = {leaf_edge()};
    });
    table.accepted("the shortest hold time", joined, [](auto& message) { message.hold_ms = 100; });
    table.accepted("the longest hold time", joined, [](auto& message) { message.hold_ms = 60'000; });
    table.accepted("a tree with four failed edges", joined, [](auto& message) {
        message.edges = {leaf_edge(), member_edge, path_edge, member_edge};
    });
    table.accepted("members called different operations", joined,
                   [](auto& message) { message.statements = statements(); });
    table.accepted("a member leaves whose path is too narrow", leave,
                   [](auto& message) { message.edges = {path_edge}; });
    table.accepted("the tree does not stand yet", encoded(joined));
    table.accepted("the tree stands", joined, [](auto& message) {
        message.ready = true;
        message.missing_units = message.missing_members = 0;
    });
    table.accepted("the tree stands, and its members get a ticket", joined, [](auto& message) {
        message.ready = true;
        message.missing_units = message.missing_members = 0;
        message.ticket = a_ticket();
    });
    table.accepted("a worker joins a channel of SwitchML", encoded(join_of_switchml()));
    table.accepted("the tree of a channel of SwitchML stands", joined, [](auto& message) {
        message.ready = true;
        message.missing_units = message.missing_members = 0;
    });
    add_refusals(table);
    table.accepted("a worker leaves", encoded(leave));
    table.accepted("a hello", encoded(wire::Hello{.nonce = 0x1122334455667788}));
    table.accepted("a hello that tries a length", encoded(wire::Hello{.nonce = 0x1122334455667788}, std::size_t{100}));
    table.accepted("a welcome of a switch with one above it", encoded(welcome()));
    table.accepted("a welcome as long as its hello", encoded(welcome(), std::size_t{200}));
    table.accepted("a request for a part of a report", encoded(stats));
    table.accepted("a part of a report", encoded(report()));
}

// Cookies, the root of a job, and what a group may read.
void add_good_of_strangers(Table& table) {
    table.accepted("a worker joins that names the switch above the racks", join_of_worker(), [](auto& join) {
        join.terms.root.family = 4;
        join.terms.root.port = 4793;
        join.terms.root.host = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{9}};
    });
    table.accepted("a switch asks for the join again, with a cookie", encoded(retry));
    table.accepted("a switch with tenants asks for the join again", retry, [](auto& message) {
        message.boot = 0x6A6B6C6D6E6F7071;
        message.name = "leaf-3";
    });
    table.accepted("a join for which a switch knows no key is refused", refused(), [](auto& message) {
        message.reason = wire::Refusal::key;
        message.text = "no such job or key";
    });
    table.accepted("joined to a group", joined, [](auto& message) {
        message.nonce = message.epoch = 0;
        message.token = message.group_number;
    });
    wire::Join question = join_of_worker();
    question.level = 2;
    question.units[0].members = 0xF;
    question.units[0].ranks = {0, 1, 2, 3};
    table.accepted("a switch asks a server that has not answered, for one unit of three",
                   encoded(question, wire::least_question_bytes));
    wire::Join with_cookie = join_of_worker();
    with_cookie.cookie = retry.cookie;
    with_cookie.epoch = 0x31323335;
    table.accepted("a worker joins with a cookie", encoded(with_cookie, wire::least_question_bytes));
}

void add_bad_joins(Table& table) {
    const auto refuse = [&table](std::string description, void (*change)(wire::Join&)) {
        table.refused(std::move(description), join_of_worker(), change);
    };
    refuse("a join of token 0", [](wire::Join& join) { join.terms.token = 0; });
    refuse("a join without lanes for elements", [](wire::Join& join) { join.terms.lanes = 1; });
    refuse("a join with a window too large", [](wire::Join& join) { join.terms.window_log2 = 17; });
    refuse("a join of units with a gap", [](wire::Join& join) { join.terms.mask1 = 0x5; });
    refuse("a join of members with a gap", [](wire::Join& join) { join.units[0].mask0 = 0xD; });
    refuse("a join of a unit outside the job", [](wire::Join& join) { join.units[0].unit = 3; });
    refuse("a join of a member outside the unit", [](wire::Join& join) { join.units[0].mask0 = 0x3; });
    refuse("a join of two workers at level 0", [](wire::Join& join) {
        join.units[0].members = 0x6;
        join.units[0].ranks = {1, 2};
    });
    refuse("a join of a direct worker at level 0", [](wire::Join& join) {
        join.units[0] = {.unit = 0, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {0}};
    });
    refuse("a join of half a rack at level 1", [](wire::Join& join) {
        join.level = 1;
        join.units[0].members = 0x6;
        join.units[0].ranks = {1, 2};
    });
    refuse("a join of one unit of three at level 2", [](wire::Join& join) {
        join.level = 2;
        join.cookie = 1;
        join.units[0].members = 0xF;
        join.units[0].ranks = {0, 1, 2, 3};
    });
    refuse("a join at level 3", [](wire::Join& join) { join.level = 3; });
    refuse("a join of no unit", [](wire::Join& join) { join.units.clear(); });
    refuse("a join with scale 0", [](wire::Join& join) { join.terms.scale = 0; });
    refuse("a join with a server of family 5", [](wire::Join& join) { join.terms.server.family = 5; });
    refuse("a join with a group of family 5", [](wire::Join& join) { join.terms.group.family = 5; });
    refuse("a join with a group that is one host", [](wire::Join& join) {
        join.terms.group = {
            .family = 4, .port = 4792, .host = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{7}}};
    });
    refuse("a join with an edge of kind 0", [](wire::Join& join) { join.edges = {{.kind = wire::EdgeKind{0}}}; });
    refuse("a join with an edge of kind 6", [](wire::Join& join) { join.edges = {{.kind = wire::EdgeKind{6}}}; });
    refuse("a join with evidence 7", [](wire::Join& join) { join.edges = {{.evidence = wire::Evidence{7}}}; });
    refuse("a join that is last in 101 percent", [](wire::Join& join) { join.pace.last_percent = 101; });
    refuse("a join with a share of 101 percent", [](wire::Join& join) { join.pace.share_percent = 101; });
    refuse("a join whose others wait 1,001 permille", [](wire::Join& join) { join.pace.waited_permille = 1001; });
    refuse("a join with a pace of unit 32", [](wire::Join& join) { join.pace.unit = 32; });
    refuse("a join with an edge of unit 32", [](wire::Join& join) { join.edges = {{.unit = 32}}; });
    refuse("a join with a statement of no member",
           [](wire::Join& join) { join.statements = {{.count = 0, .text = "barrier"}}; });
}

void add_bad_others(Table& table) {
    table.cut("a join without its last byte", encoded(join_of_worker()));
    table.cut("joined without its last byte", encoded(joined));
    table.cut("a refusal without its last byte", encoded(refused()));
    table.cut("leave without its last byte", encoded(leave));
    table.cut("a retry without its last byte", encoded(retry));
    table.refused("joined with a hold time of 99 ms", joined, [](auto& message) { message.hold_ms = 99; });
    table.refused("joined with a hold time above a minute", joined, [](auto& message) { message.hold_ms = 60'001; });
    table.refused("a retry without a cookie", retry, [](auto& message) { message.cookie = 0; });
    table.cut("a hello without its last byte", encoded(wire::Hello{.nonce = 1}));
    table.cut("a welcome without its last byte", encoded(welcome()));
    table.cut("a request for a report that is shorter than its answer may be", encoded(stats));
    table.cut("a report without its last byte", encoded(report()));
    Bytes five_edges = encoded(leave);
    five_edges.back() = std::byte{5};
    five_edges.resize(five_edges.size() + 5 * 31);
    for (std::size_t at = encoded(leave).size(); at < five_edges.size(); at += 31) {
        five_edges[at] = five_edges[at + 1] = std::byte{1};
    }
    table.refused("leave with five edges", five_edges);
    Bytes unknown = encoded(refused());
    unknown[26] = std::byte{11};
    table.refused("a refusal for reason 11", unknown);
    table.refused("leave of unit 32", leave, [](auto& message) { message.unit = 32; });
    table.refused("a report's part past the last", report(), [](auto& message) { message.part = 3; });
    table.refused("a welcome of no switch", welcome(), [](auto& message) { message.path.clear(); });
    Bytes other_version = encoded(join_of_worker());
    other_version[0] = std::byte{wire::control_version + 1};
    table.refused("a join of the next version", other_version);
    other_version[0] = std::byte{0xA1};
    table.refused("a join of the first version", other_version);
    Bytes other_type = encoded(leave);
    other_type[1] = std::byte{25};
    table.refused("the type past the last", other_type);
}

// ------------------------------------------------------------------------------------------------ Messages of a store

wire::Endpoint server_endpoint() {
    wire::Endpoint endpoint{.family = 4, .port = 4791};
    endpoint.host = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
    return endpoint;
}

wire::RankFacts facts_of_rank() {
    return {.job = 0x01020304,
            .token = 0x5EEDFACE01234567,
            .first_group = 0x31323334,
            .shares = true,
            .kernel = "3f1c9a52-8f0e-4b5d-9c2e-5a1f0c7d6e8b/4026531840",
            .host_name = "a host",
            .socket = "atp-0123456789abcdef0123456789abcdef",
            .secret_low = 0x1112131415161718,
            .secret_high = 0x2122232425262728,
            .switch_address = "10.0.0.1:4790",
            .terms = "version=5 channels=1"};
}

wire::NetworkFacts network_facts() {
    return {.path = welcome().path,
            .lanes = 360,
            .serves = true,
            .hosts_switch = true,
            .host = "10.0.0.2:0",
            .rack = "third rack, left",
            .uplink = "uplink 3",
            .host_bits_per_s = 25e9,
            .uplink_bits_per_s = 1e11,
            .sockets = {server_endpoint(), server_endpoint()}};
}

wire::ReachedFacts reached_facts() {
    return {.lanes = {360, 0, 352},
            .faults = {{.to = 1, .why = "no answer"}},
            .leaf = server_endpoint(),
            .leaf_aggregators = 4096,
            .leaf_lanes = 352};
}

constexpr wire::JobPlan job_plan{.job = 0x01020304,
                                 .channels = 3,
                                 .lanes = 352,
                                 .window = 128,
                                 .aggregators = 0x00012345,
                                 .units = 4,
                                 .levels = 2,
                                 .layout = 3};

wire::GaveUp notice() { return {.rank = 5, .reason = 12, .text = "join 10.0.0.1:4790: rejected: full"}; }

void add_good_in_a_store(Table& table) {
    table.accepted("a rank that shares memory says who it is", encoded(facts_of_rank()));
    table.accepted("a rank that shares with nobody, whose process may start a switch", facts_of_rank(),
                   [](auto& facts) { facts = {.token = 1, .starts_switch = true, .terms = facts.terms}; });
    table.accepted("a rank shares memory", encoded(wire::SharedFacts{}));
    table.accepted("a rank cannot share memory", encoded(wire::SharedFacts{.problem = "no memory"}));
    table.accepted("a rank with a switch that may serve", encoded(network_facts()));
    table.accepted("a rank without a switch", encoded(wire::NetworkFacts{.serves = true, .host = "10.0.0.2:0"}));
    table.accepted("a rank serves sums", encoded(wire::ServerFacts{.address = server_endpoint()}));
    table.accepted("a rank serves no sums", encoded(wire::ServerFacts{}));
    table.accepted("a rank reaches two of three servers", encoded(reached_facts()));
    table.accepted("the plan of a job", encoded(job_plan));
    table.accepted("a rank gives up", encoded(notice()));
    table.accepted("a notice with control characters and bytes that are no UTF-8", notice(),
                   [](auto& message) { message.text = "\x1b]0;\a\n\x7f \u0085\u00e4 \xc3/ \xed\xa0\x80 \xf5"; });
}

void add_bad_in_a_store(Table& table) {
    table.cut("facts without their last byte", encoded(facts_of_rank()));
    table.cut("the outcome of sharing without its last byte", encoded(wire::SharedFacts{.problem = "x"}));
    table.cut("facts of the network without their last byte", encoded(network_facts()));
    table.cut("a server without its last byte", encoded(wire::ServerFacts{.address = server_endpoint()}));
    table.cut("reached servers without their last byte", encoded(reached_facts()));
    table.cut("a plan without its last byte", encoded(job_plan));
    table.cut("a notice without its last byte", encoded(notice()));
    table.refused("facts of token 0", facts_of_rank(), [](auto& facts) { facts.token = 0; });
    const auto refuse_network = [&table](std::string description, void (*change)(wire::NetworkFacts&)) {
        table.refused(std::move(description), network_facts(), change);
    };
    refuse_network("a path of no lanes", [](wire::NetworkFacts& facts) { facts.lanes = 0; });
    refuse_network("lanes of no path", [](wire::NetworkFacts& facts) { facts.path.clear(); });
    refuse_network("a switch of its own that it does not name", [](wire::NetworkFacts& facts) {
        facts.path.clear();
        facts.lanes = 0;
    });
    refuse_network("a link of a negative rate", [](wire::NetworkFacts& facts) { facts.host_bits_per_s = -1; });
    refuse_network("a socket of family 5", [](wire::NetworkFacts& facts) { facts.sockets[1].family = 5; });
    const auto refuse_plan = [&table](std::string description, void (*change)(wire::JobPlan&)) {
        table.refused(std::move(description), job_plan, change);
    };
    refuse_plan("a plan of no channel", [](wire::JobPlan& plan) { plan.channels = 0; });
    refuse_plan("a plan of no lanes", [](wire::JobPlan& plan) { plan.lanes = 0; });
    refuse_plan("a plan of 33 units", [](wire::JobPlan& plan) { plan.units = 33; });
    refuse_plan("a plan of three levels", [](wire::JobPlan& plan) { plan.levels = 3; });
    refuse_plan("a plan of layout 4", [](wire::JobPlan& plan) { plan.layout = 4; });
    refuse_plan("a plan without a window", [](wire::JobPlan& plan) { plan.window = 0; });
    table.refused("a fault of rank 1,024", reached_facts(), [](auto& facts) { facts.faults[0].to = 1024; });
    table.refused("a notice for reason 16", notice(), [](auto& message) { message.reason = 16; });
    table.refused("a notice for reason 0", notice(), [](auto& message) { message.reason = 0; });
    Bytes other_type = encoded(job_plan);
    other_type[1] = std::byte{8};
    table.refused("the type past the last one of a store", other_type);
}

// Bytes after these are padding, which a row writes as a number of zeros.
constexpr std::size_t spell_out_up_to = 256;

}  // namespace

std::vector<ControlVector> control_vectors() {
    Table table;
    add_good(table);
    add_good_of_strangers(table);
    add_bad_joins(table);
    add_bad_others(table);
    add_good_in_a_store(table);
    add_bad_in_a_store(table);
    return table.take();
}

nlohmann::ordered_json to_json(const ControlVector& vector) {
    const SpeltBytes spelt = spell(vector.bytes, spell_out_up_to);
    Json row{{"description", vector.description},
             {"hex", spelt.hex},
             {"zero_bytes_after_hex", spelt.zero_bytes_after_hex},
             {"accepted", vector.accepted}};
    if (vector.accepted) row["fields"] = Json::parse(vector.fields);
    return row;
}

}  // namespace atp::conformance
