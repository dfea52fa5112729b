// SPDX-License-Identifier: Apache-2.0
#include "support/network.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "control/branch.h"
#include "support/byte_archive.h"
#include "support/integer_tensor.h"
#include "wire/control.h"

namespace atp::testing {

namespace {

// A script needs far fewer deliveries. More deliveries show that packets multiply without end.
constexpr long longest_run = 1'000'000;

// A float tensor whose purpose the test chooses.
class PurposefulTensor final : public protocol::Tensor {
  public:
    PurposefulTensor(const protocol::FloatTensor& tensor, std::uint16_t purpose) : tensor_(tensor), purpose_(purpose) {}

    [[nodiscard]] std::uint64_t size() const override { return tensor_.size(); }
    [[nodiscard]] std::uint16_t purpose() const override { return purpose_; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        return tensor_.load_integers(first, lanes);
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        tensor_.load_floats(first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override { tensor_.store(first, lanes); }

  private:
    protocol::FloatTensor tensor_;
    std::uint16_t purpose_;
};

// Number of the member of another job.
constexpr unsigned stranger = 999;

template <class Process>
Bytes data_of(Process& process) {
    ByteWriter writer;
    process.persist_data(writer);
    return writer.state;
}

template <class Process>
void restore(Process& process, const Bytes& data) {
    ByteReader reader(data);
    process.persist_data(reader);
}

}  // namespace

Network::Network(const NetworkConfig& config) : tree_(config) {
    const protocol::Membership& membership = *tree_.membership();
    for (unsigned unit = 0; unit < membership.units(); ++unit) {
        if (!membership.unit(unit).direct) make_node(rack_node(unit));
    }
    if (tree_.has_root()) make_node(root_node);
    if (tree_.switch_serves()) {
        make_node(server_node);
    } else {
        server_ = std::make_unique<RankNode>(tree_.config_of_server(), address_of(server_node));
    }
    for (unsigned rank = 0; rank < membership.workers(); ++rank) {
        const Node node = worker_node(rank);
        const auto of_rank = tree_.config_of_rank(tree_.config().channel, tree_.membership(), rank, above(node));
        ranks_.push_back(std::make_unique<RankNode>(of_rank, address_of(node)));
    }
    join();
}

void Network::make_node(Node node) {
    if (!tree_.is_pipeline(node)) {
        switches_[node] = std::make_unique<SwitchNode>(tree_.config_of_switch(node));
        return;
    }
    const NetworkConfig& config = tree_.config();
    const PipelineConfig pipeline{.channel = config.channel,
                                  .level = static_cast<std::uint8_t>(node == root_node ? 1 : 0),
                                  .aggregators = config.aggregators,
                                  .ageing = config.ageing};
    pipelines_[node] = std::make_unique<Pipeline>(pipeline, *tree_.membership());
}

// ---------------------------------------------------------------------------------------------------------- Processes

void Network::join() {
    constexpr int most_timeouts = 1000;
    const auto ready = [](const auto& rank) { return rank->ready; };
    for (int timeouts = 0; !std::ranges::all_of(ranks_, ready); ++timeouts) {
        if (timeouts == most_timeouts || !expire()) throw std::logic_error("the ranks do not join");
    }
    for (const auto& [node, at] : switches_) at->empty = data_of(at->process);
    if (server_ != nullptr) server_->empty = data_of(server_->process);
}

void Network::forget(Node node) {
    if (RankNode* const rank = rank_at(node)) return restore(rank->process, rank->empty);
    restore(switches_.at(node)->process, switches_.at(node)->empty);
}

Node Network::admit(const protocol::ChannelConfig& other, Node at) {
    constexpr unsigned rounds = 4;  // the last one has the server's answer to the second JOIN of the switch
    const auto pair = std::make_shared<const protocol::Membership>(*protocol::Membership::star(2));
    const auto make = [&](unsigned rank) {
        endpoint::ChannelMachineConfig config = tree_.config_of_rank(other, pair, rank, at);
        config.terms.server = control::endpoint_of(address_of(worker_node(stranger)));
        config.hosts_server = rank == 0;
        return std::make_unique<RankNode>(config, address_of(worker_node(stranger + rank)));
    };
    const std::array members{make(0), make(1)};
    host::SwitchHost& process = switches_.at(at)->process;
    for (unsigned turn = 0; turn < rounds * 2; ++turn) {
        host::RankHost& sender = members[turn % 2]->process;
        sender.handle_timeout(now_);
        sender.transmit(out_, now_);
        for (host::PacketList::ListedPacket& packet : out_.take()) {
            process.handle_datagram({.bytes = packet.bytes, .from = &sender.address()}, out_, now_);
        }
        for (host::PacketList::ListedPacket& packet : out_.take()) {
            host::RankHost& receiver = members[packet.to == members[0]->process.address() ? 0 : 1]->process;
            receiver.handle_datagram({.bytes = packet.bytes, .from = &process.address()}, now_);
        }
    }
    return worker_node(stranger);
}

const protocol::Server& Network::server() const {
    if (server_ != nullptr) return *server_->process.machine().server();
    const endpoint::ShardMachine& shard = switches_.at(server_node)->process.shard();
    const protocol::Server* found = nullptr;
    shard.tree().for_each([&](const control::Branch& branch) { found = shard.server_of(branch); });
    return *found;
}

Network::RankNode* Network::rank_at(Node node) const {
    if (node.kind == Node::Kind::server) return server_.get();
    return node.kind == Node::Kind::worker && node.number < ranks_.size() ? ranks_[node.number].get() : nullptr;
}

// Lets all ranks do what they have to do, and delivers messages of joining.
void Network::collect() {
    for (;;) {
        for (unsigned rank = 0; rank < ranks_.size(); ++rank) drive(*ranks_[rank], worker_node(rank));
        if (server_ != nullptr) drive(*server_, server_node);
        if (messages_.empty()) return;
        const Flight message = std::move(messages_.front());
        messages_.pop_front();
        hand_over(message.to, message.from, message.bytes);
    }
}

void Network::drive(RankNode& rank, Node node) {
    while (const auto event = rank.process.poll_event(now_)) note(rank, *event);
    rank.process.transmit(out_, now_);
    take(node);
}

// The events of the worker. Of a difference, the machine tells at once, and why it ended when all ranks have stated
// their calls.
void Network::note(RankNode& rank, const endpoint::ChannelEvent& event) {
    using Kind = endpoint::ChannelEvent::Kind;
    using WorkerKind = protocol::WorkerEvent::Kind;
    rank.ready = rank.ready || event.kind == Kind::ready;
    if (event.kind == Kind::completed) rank.events.push_back({.kind = WorkerKind::completed});
    if (event.kind == Kind::differs) rank.events.push_back({.kind = WorkerKind::mismatched});
    const auto* const cause = std::get_if<endpoint::OperationCause>(&event.cause);
    if (event.kind != Kind::failed || cause == nullptr || cause->event.kind != WorkerKind::timed_out) return;
    rank.events.push_back(cause->event);
}

// Puts what a process has sent on its link. Others than the nodes receive nothing.
void Network::take(Node from) {
    if (out_.empty()) return;
    for (host::PacketList::ListedPacket& packet : out_.take()) {
        const Node to = node_at(packet.to);
        if (to.kind == Node::Kind::worker && to.number >= ranks_.size()) continue;
        if (wire::control_type(packet.bytes)) {
            messages_.push_back({from, to, std::move(packet.bytes)});
        } else {
            put({.from = from,
                 .to = tree_.next(from, from, to),
                 .bytes = std::move(packet.bytes),
                 .congested = packet.ecn == wire::Ecn::congested,
                 .sender = from,
                 .receiver = to});
        }
    }
}

void Network::hand_over(Node to, Node sender, const Bytes& bytes, bool congested) {
    if (received_.size() < bytes.size()) received_.resize(bytes.size());
    std::ranges::copy(bytes, received_.begin());
    const wire::Address from = address_of(sender);
    const wire::Datagram datagram{.bytes = std::span(received_).first(bytes.size()),
                                  .capacity = received_.size(),
                                  .from = &from,
                                  .ecn = congested ? wire::Ecn::congested : wire::Ecn::capable_0};
    if (RankNode* const rank = rank_at(to)) return rank->process.handle_datagram(datagram, now_);
    switches_.at(to)->process.handle_datagram(datagram, out_, now_);
    take(to);
}

// ------------------------------------------------------------------------------------------------------------ Scripts

void Network::submit(unsigned rank, std::vector<float> values, Time deadline, std::uint16_t purpose) {
    RankNode& node = *ranks_.at(rank);
    node.jobs.push_back({});
    Job& job = node.jobs.back();
    job.input = std::move(values);
    job.output.assign(job.input.size(), 0.0F);
    job.tensor = std::make_unique<PurposefulTensor>(
        protocol::FloatTensor(job.input, job.output, static_cast<float>(tree_.config().scale)), purpose);
    if (!node.process.submit(*job.tensor, now_, deadline)) throw std::logic_error("tensor not accepted");
}

void Network::submit(unsigned rank, protocol::Tensor& tensor) {
    if (!ranks_.at(rank)->process.submit(tensor, now_)) throw std::logic_error("tensor not accepted");
}

void Network::submit_integers(unsigned rank, std::vector<std::int32_t> values, std::uint16_t purpose) {
    RankNode& node = *ranks_.at(rank);
    node.jobs.push_back({});
    Job& job = node.jobs.back();
    job.integers_in = std::move(values);
    job.integers_out.assign(job.integers_in.size(), 0);
    job.tensor = std::make_unique<IntegerTensor>(job.integers_in, job.integers_out, purpose);
    if (!node.process.submit(*job.tensor, now_)) throw std::logic_error("tensor not accepted");
}

void Network::submit_all(std::size_t elements, const std::function<float(unsigned, std::size_t)>& value_of) {
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        std::vector<float> values;
        for (std::size_t element = 0; element < elements; ++element) values.push_back(value_of(rank, element));
        submit(rank, std::move(values));
    }
}

void Network::fate_of_next(Disposition disposition, Match match, int times) {
    set_rule([disposition, match = std::move(match), times](Flight& flight) mutable {
        if (times == 0 || !match(flight)) return Disposition::deliver;
        --times;
        return disposition;
    });
}

void Network::put(Flight flight) {
    const Disposition disposition = rule_ ? rule_(flight) : Disposition::deliver;
    if (disposition == Disposition::drop) return;
    if (disposition == Disposition::hold) {
        held_.push_back(std::move(flight));
        return;
    }
    if (disposition == Disposition::duplicate) links_.push_back(flight);
    links_.push_back(std::move(flight));
}

// A packet that passes again is in flight to the same pipeline. One that answers another goes back to its sender.
void Network::through_pipeline(Pipeline& pipeline, Flight& flight) {
    const bool went_up = above(*flight.sender) == *flight.receiver;
    const Pipeline::Fate fate = pipeline.handle(flight.bytes, flight.congested, flight.next_pass, now_);
    if (fate == Pipeline::Fate::absorbed) return;
    if (fate == Pipeline::Fate::passes_again) return put(flight);
    const bool goes_up = fate == Pipeline::Fate::goes_up;
    if (goes_up != went_up) std::swap(flight.sender, flight.receiver);
    put({.from = flight.to,
         .to = tree_.next(flight.to, *flight.sender, *flight.receiver),
         .bytes = flight.bytes,
         .congested = !goes_up && flight.congested,
         .sender = flight.sender,
         .receiver = flight.receiver});
}

void Network::deliver(Flight flight) {
    now_ += std::chrono::microseconds(1);
    delivered_.push_back(flight);
    const auto pipeline = pipelines_.find(flight.to);
    if (pipeline != pipelines_.end()) {
        through_pipeline(*pipeline->second, flight);
    } else {
        hand_over(flight.to, *flight.sender, flight.bytes, flight.congested);
    }
    collect();
}

void Network::run() {
    collect();
    for (long delivery = 0; !links_.empty(); ++delivery) {
        if (delivery == longest_run) throw std::logic_error("packets breed");
        Flight next = std::move(links_.front());
        links_.pop_front();
        deliver(std::move(next));
    }
}

void Network::release(const Match& match) {
    std::vector<Flight> kept;
    for (Flight& flight : held_) {
        if (match && !match(flight)) {
            kept.push_back(std::move(flight));
        } else {
            links_.push_back(std::move(flight));
        }
    }
    held_ = std::move(kept);
}

void Network::inject(Flight flight) {
    if (!flight.sender) flight.sender = flight.from, flight.receiver = flight.to;
    links_.push_back(std::move(flight));
}

bool Network::expire() {
    Time next = never;
    for (const auto& rank : ranks_) next = std::min(next, rank->process.poll_timeout());
    if (next == never) return false;
    now_ = std::max(now_, next);
    for (const auto& rank : ranks_) rank->process.handle_timeout(now_);
    for (const auto& [node, at] : switches_) {
        if (at->process.poll_timeout() > now_) continue;
        at->process.handle_timeout(out_, now_);
        take(node);
    }
    collect();
    return true;
}

bool Network::done() const {
    return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->process.machine().worker().idle(); });
}

bool Network::finish(int expiries) {
    run();
    for (; !done(); --expiries) {
        if (expiries == 0 || !expire()) return false;
        run();
    }
    return true;
}

void Network::deliver_random(const Faults& faults, Random& random) {
    std::uint32_t at = 0;
    if (random.chance(faults.reordering)) at = random.below(static_cast<std::uint32_t>(links_.size()));
    Flight flight = links_[at];
    if (!random.chance(faults.duplication)) links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(at));
    if (random.chance(faults.loss)) return;
    flight.congested = flight.congested || random.chance(faults.marking);
    deliver(std::move(flight));
}

bool Network::finish_among(const Faults& faults, std::uint32_t seed, long steps) {
    Random random(seed);
    collect();
    for (; steps > 0 && !done(); --steps) {
        if (links_.empty()) {
            if (!expire()) return false;
        } else {
            deliver_random(faults, random);
        }
    }
    return done();
}

const std::vector<float>& Network::output(unsigned rank, std::size_t tensor) const {
    return ranks_.at(rank)->jobs.at(tensor).output;
}

const std::vector<std::int32_t>& Network::integers(unsigned rank, std::size_t tensor) const {
    return ranks_.at(rank)->jobs.at(tensor).integers_out;
}

const std::vector<protocol::WorkerEvent>& Network::events(unsigned rank) const { return ranks_.at(rank)->events; }

std::vector<std::uint32_t> Network::result_bits() const {
    std::vector<std::uint32_t> bits;
    for (const Job& job : ranks_.front()->jobs) {
        for (const float value : job.output) bits.push_back(std::bit_cast<std::uint32_t>(value));
    }
    return bits;
}

bool Network::integers_are_right(std::size_t tensor) const {
    for (std::size_t element = 0; element < integers(0, tensor).size(); ++element) {
        std::uint32_t sum = 0;
        for (const auto& node : ranks_) sum += static_cast<std::uint32_t>(node->jobs.at(tensor).integers_in[element]);
        const bool right = std::ranges::all_of(ranks_, [&](const auto& node) {
            return static_cast<std::uint32_t>(node->jobs.at(tensor).integers_out[element]) == sum;
        });
        if (!right) return false;
    }
    return true;
}

bool Network::sums_are_right() const {
    const auto same_bits = [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    };
    for (std::size_t tensor = 0; tensor < ranks_.front()->jobs.size(); ++tensor) {
        if (!integers_are_right(tensor)) return false;
        const std::vector<float>& first = output(0, tensor);
        for (std::size_t element = 0; element < first.size(); ++element) {
            std::int64_t sum = 0;
            for (const auto& node : ranks_) {
                const Job& job = node->jobs.at(tensor);
                sum += std::llrint(job.input[element] * static_cast<float>(tree_.config().scale));
                if (!same_bits(job.output[element], first[element])) return false;
            }
            const double exact = static_cast<double>(sum) * (1.0 / tree_.config().scale);
            if (!same_bits(first[element], static_cast<float>(exact))) return false;
        }
    }
    return true;
}

std::uint32_t Network::occupied() const {
    std::uint32_t count = 0;
    for (const auto& [node, at] : switches_) count += at->process.shard().table().occupied();
    return count;
}

std::size_t Network::count_delivered(const Match& match) const {
    return static_cast<std::size_t>(std::ranges::count_if(delivered_, match));
}

std::size_t Network::bytes_into(Node node) const {
    std::size_t bytes = 0;
    for (const Flight& flight : delivered_) bytes += flight.to == node ? flight.bytes.size() : 0;
    return bytes;
}

}  // namespace atp::testing
