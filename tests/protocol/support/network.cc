// SPDX-License-Identifier: Apache-2.0
#include "support/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "endpoint/routing.h"
#include "support/integer_tensor.h"

namespace atp::testing {

using protocol::Route;

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

std::unique_ptr<protocol::Switch> make_switch(const NetworkConfig& config, std::uint8_t level) {
    auto machine = std::make_unique<protocol::Switch>(protocol::SwitchConfig{
        .aggregators = config.aggregators, .lanes = config.channel.lanes, .jobs = 8, .ageing = config.ageing});
    if (!machine->admit(config.channel.job, config.channel.token, level)) throw std::logic_error("job not admitted");
    return machine;
}

std::unique_ptr<Pipeline> make_pipeline(const NetworkConfig& config, std::uint8_t level) {
    return std::make_unique<Pipeline>(
        PipelineConfig{
            .channel = config.channel, .level = level, .aggregators = config.aggregators, .ageing = config.ageing},
        config.membership);
}

bool needs_root(const NetworkConfig& config) {
    const protocol::Membership& membership = config.membership;
    return config.has_root && (membership.units() > 1 || membership.unit(0).direct);
}

}  // namespace

Network::Network(const NetworkConfig& config) : config_(config) {
    config_.channel.aggregators = config.aggregators;
    for (unsigned unit = 0; unit < config_.membership.units(); ++unit) {
        const bool present = config.racks_aggregate && !config_.membership.unit(unit).direct;
        racks_.push_back(present ? make_switch(config_, 0) : nullptr);
        const bool is_pipeline = present && (config_.pipelines >> unit & 1U) != 0;
        rack_pipelines_.push_back(is_pipeline ? make_pipeline(config_, 0) : nullptr);
    }
    if (needs_root(config_)) root_ = make_switch(config_, 1);
    if (root_ != nullptr && config_.root_is_pipeline) root_pipeline_ = make_pipeline(config_, 1);
    replace_server();
    for (unsigned rank = 0; rank < config_.membership.workers(); ++rank) {
        workers_.push_back(std::make_unique<WorkerNode>());
        workers_.back()->machine = std::make_unique<protocol::Worker>(worker_config(rank));
    }
}

protocol::WorkerConfig Network::worker_config(unsigned rank) const {
    protocol::WorkerConfig worker;
    worker.channel = config_.channel;
    worker.rank = static_cast<std::uint16_t>(rank);
    worker.place = config_.membership.place(worker.rank);
    worker.senders = protocol::SenderMasks(config_.membership, worker.rank);
    worker.scale = config_.scale;
    worker.congestion = config_.congestion;
    worker.int32_lanes = config_.int32_lanes;
    if (config_.bounded) worker.bypass_above = protocol::bounded_magnitude(config_.membership.workers());
    return worker;
}

void Network::replace_server() {
    server_ = std::make_unique<protocol::Server>(
        protocol::ServerConfig{
            .channel = config_.channel, .scale = config_.scale, .repeat_interval = config_.repeat_interval},
        config_.membership);
}

void Network::submit(unsigned rank, std::vector<float> values, Time deadline, std::uint16_t purpose) {
    WorkerNode& node = *workers_.at(rank);
    node.jobs.push_back({});
    Job& job = node.jobs.back();
    job.input = std::move(values);
    job.output.assign(job.input.size(), 0.0F);
    job.tensor = std::make_unique<PurposefulTensor>(
        protocol::FloatTensor(job.input, job.output, static_cast<float>(config_.scale)), purpose);
    if (!node.machine->submit(*job.tensor, now_, deadline)) throw std::logic_error("tensor not accepted");
}

void Network::submit(unsigned rank, protocol::Tensor& tensor) {
    if (!workers_.at(rank)->machine->submit(tensor, now_)) throw std::logic_error("tensor not accepted");
}

void Network::submit_integers(unsigned rank, std::vector<std::int32_t> values, std::uint16_t purpose) {
    WorkerNode& node = *workers_.at(rank);
    node.jobs.push_back({});
    Job& job = node.jobs.back();
    job.integers_in = std::move(values);
    job.integers_out.assign(job.integers_in.size(), 0);
    job.tensor = std::make_unique<IntegerTensor>(job.integers_in, job.integers_out, purpose);
    if (!node.machine->submit(*job.tensor, now_)) throw std::logic_error("tensor not accepted");
}

void Network::submit_all(std::size_t elements, const std::function<float(unsigned, std::size_t)>& value_of) {
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
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

protocol::Switch* Network::switch_at(Node node) {
    if (node.kind == Node::Kind::rack) return racks_.at(node.number).get();
    return node.kind == Node::Kind::root ? root_.get() : nullptr;
}

Pipeline* Network::pipeline_at(Node node) {
    if (node.kind == Node::Kind::rack) return rack_pipelines_.at(node.number).get();
    return node.kind == Node::Kind::root ? root_pipeline_.get() : nullptr;
}

Node Network::above(Node node) const {
    if (node.kind == Node::Kind::worker) {
        const unsigned unit = config_.membership.place(static_cast<std::uint16_t>(node.number)).unit;
        if (has_rack(unit)) return rack_node(unit);
    }
    if (node.kind != Node::Kind::root && root_ != nullptr) return root_node;
    return server_node;
}

// Puts every packet that workers and server have to send on its link.
void Network::collect() {
    Bytes buffer(server_->packet_bytes());
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
        WorkerNode& node = *workers_[rank];
        while (const auto size = node.machine->poll_transmit(buffer, now_)) {
            const auto end = buffer.begin() + static_cast<std::ptrdiff_t>(*size);
            put({worker_node(rank), above(worker_node(rank)), Bytes(buffer.begin(), end)});
        }
        while (const auto event = node.machine->poll_event()) node.events.push_back(*event);
    }
    while (const auto sent = server_->poll_transmit(buffer)) {
        const auto end = buffer.begin() + static_cast<std::ptrdiff_t>(sent->size);
        send_down(server_node, Bytes(buffer.begin(), end), false);
    }
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

// Nodes below a switch or the server, for endpoint::for_each_receiver().
class Network::Receivers {
  public:
    Receivers(const Network& network, Node from) : network_(network), from_(from) {}

    template <class Visit>
    void visit_worker(std::uint16_t rank, Visit&& visit) const {
        const unsigned unit = network_.config_.membership.place(rank).unit;
        if (leads_to(unit)) visit(passes_rack(unit) ? rack_node(unit) : worker_node(rank));
    }
    template <class Visit>
    void visit_units(std::uint32_t units, std::uint32_t /*members*/, Visit&& visit) const {
        for (unsigned unit = 0; unit < network_.config_.membership.units(); ++unit) {
            if ((units >> unit & 1U) == 0 || !leads_to(unit)) continue;
            if (passes_rack(unit)) {
                visit(rack_node(unit));
                continue;
            }
            for (const std::uint16_t rank : network_.config_.membership.unit(unit).ranks) visit(worker_node(rank));
        }
    }
    [[nodiscard]] bool is_switch(Node node) const { return node.kind != Node::Kind::worker; }
    [[nodiscard]] bool is_worker(Node node, std::uint16_t rank) const { return node == worker_node(rank); }

  private:
    [[nodiscard]] bool leads_to(unsigned unit) const { return from_.kind != Node::Kind::rack || from_.number == unit; }
    [[nodiscard]] bool passes_rack(unsigned unit) const {
        return from_.kind != Node::Kind::rack && network_.has_rack(unit);
    }

    const Network& network_;
    Node from_;
};

void Network::send_down(Node from, const Bytes& bytes, bool congested) {
    if (from.kind == Node::Kind::server && root_ != nullptr) {
        put({from, root_node, bytes, congested});
        return;
    }
    endpoint::for_each_receiver(endpoint::downward_of(bytes), Receivers(*this, from), [&](Node to) {
        put({from, to, bytes, congested});
    });
}

void Network::through_switch(protocol::Switch& machine, Flight& flight) {
    auto size = static_cast<std::uint32_t>(flight.bytes.size());
    flight.bytes.resize(std::max<std::size_t>(size, server_->packet_bytes()));
    protocol::PacketBuffer packet_buffer{.data = flight.bytes.data(),
                                         .size = size,
                                         .capacity = static_cast<std::uint32_t>(flight.bytes.size()),
                                         .congested = flight.congested,
                                         .verdict = {}};
    machine.handle_packet(packet_buffer, now_);
    flight.bytes.resize(packet_buffer.size);
    if (packet_buffer.verdict.route == Route::up) {
        put({flight.to, above(flight.to), flight.bytes});
    } else if (packet_buffer.verdict.route == Route::down) {
        send_down(flight.to, flight.bytes, flight.congested);
    }
}

// A packet that passes again is in flight to the same pipeline.
void Network::through_pipeline(Pipeline& pipeline, Flight& flight) {
    switch (pipeline.handle(flight.bytes, flight.congested, flight.next_pass, now_)) {
        case Pipeline::Fate::absorbed: return;
        case Pipeline::Fate::passes_again: put(flight); return;
        case Pipeline::Fate::goes_up: put({flight.to, above(flight.to), flight.bytes}); return;
        case Pipeline::Fate::goes_down: send_down(flight.to, flight.bytes, flight.congested); return;
    }
}

void Network::deliver(Flight flight) {
    now_ += std::chrono::microseconds(1);
    delivered_.push_back(flight);
    if (Pipeline* pipeline = pipeline_at(flight.to)) {
        through_pipeline(*pipeline, flight);
    } else if (protocol::Switch* machine = switch_at(flight.to)) {
        through_switch(*machine, flight);
    } else if (flight.to.kind == Node::Kind::worker) {
        worker(flight.to.number).handle_packet(flight.bytes, flight.congested, now_);
    } else {
        server_->handle_packet(flight.bytes, flight.congested, now_);
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

void Network::inject(Flight flight) { links_.push_back(std::move(flight)); }

bool Network::expire() {
    Time next = never;
    for (const auto& node : workers_) next = std::min(next, node->machine->poll_timeout());
    if (next == never) return false;
    now_ = std::max(now_, next);
    for (const auto& node : workers_) node->machine->handle_timeout(now_);
    collect();
    return true;
}

bool Network::done() const {
    return std::ranges::all_of(workers_, [](const auto& node) { return node->machine->idle(); });
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
    return workers_.at(rank)->jobs.at(tensor).output;
}

const std::vector<std::int32_t>& Network::integers(unsigned rank, std::size_t tensor) const {
    return workers_.at(rank)->jobs.at(tensor).integers_out;
}

const std::vector<protocol::WorkerEvent>& Network::events(unsigned rank) const { return workers_.at(rank)->events; }

std::vector<std::uint32_t> Network::result_bits() const {
    std::vector<std::uint32_t> bits;
    for (const Job& job : workers_.front()->jobs) {
        for (const float value : job.output) bits.push_back(std::bit_cast<std::uint32_t>(value));
    }
    return bits;
}

bool Network::integers_are_right(std::size_t tensor) const {
    for (std::size_t element = 0; element < integers(0, tensor).size(); ++element) {
        std::uint32_t sum = 0;
        for (const auto& node : workers_) sum += static_cast<std::uint32_t>(node->jobs.at(tensor).integers_in[element]);
        const bool right = std::ranges::all_of(workers_, [&](const auto& node) {
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
    for (std::size_t tensor = 0; tensor < workers_.front()->jobs.size(); ++tensor) {
        if (!integers_are_right(tensor)) return false;
        const std::vector<float>& first = output(0, tensor);
        for (std::size_t element = 0; element < first.size(); ++element) {
            std::int64_t sum = 0;
            for (const auto& node : workers_) {
                const Job& job = node->jobs.at(tensor);
                sum += std::llrint(job.input[element] * static_cast<float>(config_.scale));
                if (!same_bits(job.output[element], first[element])) return false;
            }
            const double exact = static_cast<double>(sum) * (1.0 / config_.scale);
            if (!same_bits(first[element], static_cast<float>(exact))) return false;
        }
    }
    return true;
}

std::uint32_t Network::occupied() const {
    std::uint32_t count = root_ == nullptr ? 0 : root_->occupied();
    for (const auto& machine : racks_) count += machine == nullptr ? 0 : machine->occupied();
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
