// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "base/hash.h"
#include "comm/formation.h"
#include "comm/host_formation.h"
#include "comm/option_table.h"
#include "endpoint/channel_text.h"
#include "net/affinity.h"
#include "net/clock.h"
#include "observe/traced_transport.h"
#include "tensor/slice.h"
#include "tensor/tensor_group.h"
#include "tensor/tensors.h"

namespace atp::comm {
namespace {

Failure refuse(Operation operation, Reason reason, std::string text) {
    return fail(operation, reason, {}, std::move(text));
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

// A word in ATP_LOG that is no level counts as unset: ranks must not fail for their log.
observe::LogConfig log_config(const Options& options) {
    const auto level = observe::severity_of(variable("ATP_LOG"));
    const auto usual = options.log_receiver ? observe::Severity::debug : observe::Severity::warn;
    return {.level = level.value_or(usual), .queued_lines = 256, .receiver = options.log_receiver};
}

tensor::NumberForm form_of(const Options& options) {
    return {.scale = options.scale, .scaling = options.scaling, .lane_type = options.lane_type};
}

// Logs once that numbers vanish.
std::function<void(const tensor::NumberTally&)> report_to(std::shared_ptr<observe::Log> log, std::uint32_t rank) {
    constexpr std::uint64_t tolerated = 100;  // one in so many
    return [log = std::move(log), rank,
            reported = std::make_shared<std::atomic<bool>>(false)](const tensor::NumberTally& tally) {
        if (tally.vanished * tolerated <= tally.values || reported->exchange(true)) return;
        log->write(
            observe::LogEvent::values_rounded_to_zero,
            {{"rank", rank},
             {"reason", fmt::format("{} of {} nonzero inputs in a sample of an operation round to 0 at its scale",
                                    tally.vanished, tally.values)}});
    };
}

// "5 + 7 float32 (average)": the elements of each tensor. Other ranks may read it if they called something else.
std::string text_of(std::span<const std::unique_ptr<protocol::Tensor>> tensors, std::uint64_t elements,
                    numeric::ElementType type, const Summing& summing) {
    constexpr std::size_t most_listed = 4;
    const std::uint64_t lanes = type == numeric::ElementType::int64 ? tensor::lanes_of_int64 : 1;
    std::string sizes = fmt::format("{}", elements);
    if (tensors.size() > most_listed) {
        sizes += fmt::format(" in {} tensors of", tensors.size());
    } else if (tensors.size() > 1) {
        sizes.clear();
        for (const auto& tensor : tensors) {
            sizes += fmt::format("{}{}", sizes.empty() ? "" : " + ", tensor->size() / lanes);
        }
    }
    return fmt::format("{} {} ({})", sizes, to_string(type), to_string(summing));
}

}  // namespace

std::uint16_t purpose_of(Operation operation, std::uint64_t elements, std::uint32_t detail) {
    const std::uint32_t hash =
        mix(mix(mix(static_cast<std::uint32_t>(operation) + 0x9e37U) + detail) +
            mix(static_cast<std::uint32_t>(elements)) + static_cast<std::uint32_t>(elements >> 32U));
    return static_cast<std::uint16_t>(hash ^ (hash >> 16U));
}

std::string to_string(const Summing& summing) {
    switch (summing.reduction) {
        case Reduction::sum: return "sum";
        case Reduction::average: return "average";
        case Reduction::scaled: break;
    }
    return fmt::format("sum times {:g}", summing.factor);
}

std::uint64_t alignment_of(numeric::ElementType type) {
    return type == numeric::ElementType::int64 ? tensor::lanes_of_int64 : 1;
}

std::uint32_t detail_of(numeric::ElementType type, const Summing& summing) {
    const std::uint32_t base = (static_cast<std::uint32_t>(type) << 8U) | static_cast<std::uint32_t>(summing.reduction);
    if (summing.reduction != Reduction::scaled) return base;
    const auto factor = std::bit_cast<std::uint64_t>(summing.factor);
    return mix(mix(base + static_cast<std::uint32_t>(factor)) + static_cast<std::uint32_t>(factor >> 32U));
}

std::uint32_t detail_of(numeric::FoldType type, numeric::FoldOperation operation) {
    return (static_cast<std::uint32_t>(type) << 8U) | static_cast<std::uint32_t>(operation);
}

Communicator::Communicator(std::uint32_t rank, std::uint32_t world, const Options& options)
    : rank_(rank),
      world_(world),
      options_(options),
      log_(std::make_shared<observe::Log>(log_config(options))),
      fitter_({.form = form_of(options), .ranks = world, .feed = feed_, .report = report_to(log_, rank)}) {}

// Stop the channels first: their threads read members that the destructor frees, such as pushed values.
Communicator::~Communicator() {
    metrics_.reset();
    feed_->close();
    if (host_ != nullptr) host_->stop();
    if (!failed_) finish_order_barriers();
    channels_.stop();
    gathers_.stop();
    if (!failed_) end_service();
    const bool formed = host_ != nullptr || !channels_.empty();
    if (formed && !failed_) log_->write(observe::LogEvent::job_left, fields());
}

std::vector<observe::LogField> Communicator::fields(std::vector<observe::LogField> more) const {
    std::vector<observe::LogField> all;
    if (formation_.job) all.push_back(observe::job_field(*formation_.job));
    all.emplace_back("rank", rank_);
    std::ranges::move(more, std::back_inserter(all));
    return all;
}

void Communicator::log_ready() {
    if (host_ != nullptr) {
        log_->write(observe::LogEvent::memory_shared, {{"rank", rank_}, {"ranks", formation_.host_ranks}});
        if (channels_.empty()) return;
    }
    log_->write(observe::LogEvent::job_ready, fields({{"world", world_},
                                                      {"switch", options_.switch_address},
                                                      {"channels", formation_.channels},
                                                      {"lanes", formation_.lanes},
                                                      {"window", formation_.window},
                                                      {"aggregators", formation_.aggregators},
                                                      {"levels", formation_.levels}}));
    for (const std::string& text : missing_features()) {
        const observe::MissingFeature missing = observe::missing_feature(text);
        log_->write(observe::LogEvent::feature_missing, {{"name", missing.name}, {"reason", missing.reason}});
    }
}

// Ranks whose last results were lost still need the sums that this rank serves.
void Communicator::end_service() {
    if (nodes_.empty()) return;
    constexpr Duration longest_wait = std::chrono::seconds(10);
    constexpr Duration pause = std::chrono::milliseconds(2);
    const Time until = net::now() + longest_wait;
    const auto serves = [this] {
        return std::ranges::any_of(nodes_, [](const auto& node) {
            return std::ranges::any_of(node->snapshot().shards,
                                       [](const auto& shard) { return !shard.channels.empty(); });
        });
    };
    while (net::now() < until && serves()) std::this_thread::sleep_for(pause);
}

void Communicator::log_reason(observe::LogEvent event, std::string reason) {
    log_->write(event, fields({{"reason", std::move(reason)}}));
}

// The first failure of a channel ends all of them. The end by the caller is none.
void Communicator::log_failure(const Error& error) {
    if (error.reason == Reason::closed || failed_.exchange(true)) return;
    log_reason(observe::LogEvent::job_failed, to_string(error));
}

// Each channel notices a slow rank by itself.
void Communicator::log_slow(const std::string& text) {
    constexpr Duration pause = std::chrono::minutes(1);
    const Duration::rep now = net::now().time_since_epoch().count();
    Duration::rep next = logged_.next_slow;
    if (now < next || !logged_.next_slow.compare_exchange_strong(next, now + pause.count())) return;
    log_reason(observe::LogEvent::rank_slow, text);
}

void Communicator::log_floats(const protocol::WorkerCounters& counters) {
    if (logged_.floats.exchange(true)) return;
    const bool fixed = options_.scaling == tensor::Scaling::fixed;
    log_reason(observe::LogEvent::float_fallback,
               fmt::format("{} packets of {} fragments have float32, which no switch adds, since numbers of some rank "
                           "fit no integer at their scale{}",
                           counters.float_fragments, counters.sent, fixed ? "; try dynamic scaling" : ""));
}

// Each channel learns it by itself.
void Communicator::log_int32_lanes() {
    if (logged_.int32.exchange(true)) return;
    log_reason(observe::LogEvent::int32_fallback,
               "a switch in the path adds only int32, so integers of int16 and int8 are sent as int32");
}

void Communicator::log_type(numeric::ElementType type) {
    if (type != numeric::ElementType::float64 || logged_.float64.exchange(true)) return;
    log_reason(observe::LogEvent::float64_rounded, "float64 is summed with the precision and the range of float32");
}

Result<Handle> Communicator::submit(OperationCall call, std::unique_ptr<protocol::Tensor> tensor, Time deadline) {
    if (const auto failed = failed_proof()) {
        return tl::unexpected(endpoint::error_after_end(*failed, call.operation));
    }
    const std::scoped_lock lock(order_);
    const bool is_sealed = seals() && tensor->size() != 0;
    auto fitted = is_sealed ? fit_sealed(call, std::move(tensor)) : fit(call, std::move(tensor));
    return submit_fitted(call, std::move(fitted), deadline);
}

tensor::NumberFitter::Fitted Communicator::fit(const OperationCall& call, std::unique_ptr<protocol::Tensor> tensor) {
    if (!fits_numbers() || tensor->plain() || tensor->size() == 0) return {.tensor = std::move(tensor)};
    return fitter_.fit(std::move(tensor), call.type, kind_of(call), host_ != nullptr && !chunks_);
}

Handle Communicator::submit_fitted(const OperationCall& call, tensor::NumberFitter::Fitted fitted, Time deadline) {
    const Time now = net::now();
    if (deadline == never) deadline = net::after(now, options_.timeout);
    const std::uint16_t purpose = purpose_of(call.operation, call.elements, call.detail);
    const protocol::Tensor& whole = *fitted.tensor;
    const bool is_empty = whole.size() == 0;
    auto work = std::make_shared<Work>(call.operation, std::move(fitted.tensor), now, deadline);
    work->set_scales(std::move(fitted.scales));
    ++calls_;
    work->set_called(fmt::format("{} as call {}", call.text, calls_));
    if (is_empty) return work;
    work->set_times(times_);
    const std::uint16_t purpose_beside = purpose_of(call.operation, call.elements, mix(call.detail));
    if (call.last_step) {
        work->set_last_step(call.last_step);
        work->on_failure([this](const Error& error) { end_after(error); });
    }
    if (host_ != nullptr) {
        work->add_slice(0, whole.size(), purpose);
        submit_on_host(work, std::move(fitted), purpose_beside, call.alignment);
    } else {
        for (auto& first : fitted.before) add_beside(*work, std::move(first), purpose_beside);
        add_slices(*work, whole, purpose, call.alignment);
        if (fitted.after != nullptr) add_beside(*work, std::move(fitted.after), purpose_beside);
        submit_in_order(work, purpose);
    }
    return work;
}

void Communicator::submit_on_host(const Handle& work, tensor::NumberFitter::Fitted fitted, std::uint16_t purpose,
                                  std::uint64_t alignment) {
    const auto beside = [&](std::unique_ptr<protocol::Tensor> tensor) {
        const std::uint64_t lanes = tensor->size();
        auto own = std::make_shared<Work>(work->operation(), std::move(tensor), work->begun(), work->deadline());
        own->set_called(work->called());
        own->add_slice(0, lanes, purpose);
        return own;
    };
    for (auto& first : fitted.before) host_->submit(beside(std::move(first)), 1);
    if (fitted.after == nullptr) return host_->submit(work, alignment);
    const Handle last = beside(std::move(fitted.after));
    work->add_part();
    last->set_callback([work, raw = last.get()] {
        const auto outcome = raw->outcome();
        work->finish_part(outcome ? std::nullopt : std::optional(outcome.error()));
    });
    host_->submit(work, alignment);
    host_->submit(last, 1);
}

void Communicator::add_beside(Work& work, std::unique_ptr<protocol::Tensor> tensor, std::uint16_t purpose) const {
    const std::uint64_t lanes = tensor->size();
    const std::uint64_t step = chunks_ ? tensor::lanes_of_chunk(*chunks_, lanes, tensor->spans().length) : lanes;
    work.add_beside(std::move(tensor), step, purpose);
}

void Communicator::add_slices(Work& work, const protocol::Tensor& tensor, std::uint16_t purpose,
                              std::uint64_t alignment) const {
    const std::uint64_t lanes = tensor.size();
    const std::uint64_t step =
        chunks_ ? tensor::lanes_of_chunk(*chunks_, lanes, tensor.spans().length)
                : tensor::length_of_slice(lanes, fragment_elements(tensor.form()), channels_.size(), alignment);
    for (std::uint64_t first = 0; first < lanes; first += step) {
        work.add_slice(first, std::min(step, lanes - first), purpose);
    }
}

// Every rank calls the operations of both kinds of channels in one order. Where the kind changes, a barrier in a
// channel of the kind before keeps them in that order: ranks that call different operations find out there (H40, H61).
void Communicator::submit_in_order(const Handle& work, std::uint16_t purpose) {
    // A failure of one channel ends the communicator. Otherwise, parts on other channels would wait for their deadline,
    // and there the next operation of this rank could meet an earlier operation of other ranks.
    if (channels_.size() + gathers_.size() > 1) work->on_failure([this](const Error& error) { end_after(error); });
    const bool gathers = work->operation() == Operation::all_gather && !gathers_.empty();
    if (std::exchange(gathering_, gathers) != gathers) {
        ChannelSet& before = gathers ? channels_ : gathers_;
        auto barrier = std::make_shared<Work>(
            work->operation(), tensor::make_broadcast_tensor(nullptr, nullptr, ATP_LANE_BYTES), work->begun(), never);
        barrier->set_called(work->called());
        barrier->add_slice(0, 1, purpose);
        barrier->on_failure([this](const Error& error) { end_channels(error); });
        before.add_barrier(barrier);
        order_barriers_[gathers ? 0 : 1] = std::move(barrier);
    }
    ChannelSet& set = gathers ? gathers_ : channels_;
    set.start();
    set.submit(work);
}

// No operation of this rank waits for its last barriers, but operations of other ranks do.
void Communicator::finish_order_barriers() {
    constexpr Duration longest_wait = std::chrono::seconds(1);
    const Time until = net::now() + longest_wait;
    for (const Handle& barrier : order_barriers_) {
        if (barrier != nullptr) static_cast<void>(barrier->wait_until(until));
    }
}

Result<Handle> Communicator::all_reduce(const Buffer& buffer, numeric::ElementType type, const Summing& summing,
                                        Time deadline) {
    return all_reduce(std::span(&buffer, 1), type, summing, deadline);
}

Result<Handle> Communicator::all_reduce(std::span<const Buffer> buffers, numeric::ElementType type,
                                        const Summing& summing, Time deadline) {
    if (summing.reduction != Reduction::sum && numeric::is_integer(type)) {
        return refuse(
            Operation::all_reduce, Reason::unsupported,
            // errors.md, calls, unsupported
            fmt::format("elements of type {} have no average: use a sum, and divide the result", to_string(type)));
    }
    std::vector<std::unique_ptr<protocol::Tensor>> tensors;
    std::uint64_t elements = 0;
    for (const Buffer& buffer : buffers) {
        if (buffer.elements == 0) continue;
        if (buffer.in == nullptr || buffer.out == nullptr) {
            // errors.md, calls, malformed
            return refuse(Operation::all_reduce, Reason::malformed, "a buffer is NULL, but its size is above 0");
        }
        elements += buffer.elements;
        const double by = numeric::is_integer(type) ? 1.0 : factor(summing);
        tensors.push_back(tensor::make_sum_tensor(type, buffer.in, buffer.out, buffer.elements, scale(), by));
    }
    return all_reduce(std::move(tensors), elements, type, summing, deadline);
}

Result<Handle> Communicator::all_reduce(std::vector<std::unique_ptr<protocol::Tensor>> tensors, std::uint64_t elements,
                                        numeric::ElementType type, const Summing& summing, Time deadline) {
    constexpr Operation operation = Operation::all_reduce;
    log_type(type);
    if (tensors.empty()) return std::make_shared<Work>(operation, nullptr, net::now(), net::now());
    std::uint32_t detail = detail_of(type, summing);  // the boundaries between tensors are mixed in below
    for (const auto& tensor : tensors) detail = mix(detail + static_cast<std::uint32_t>(tensor->size()));
    std::string called = fmt::format("{} of {}", to_string(operation), text_of(tensors, elements, type, summing));
    std::unique_ptr<protocol::Tensor> whole =
        tensors.size() == 1 ? std::move(tensors.front()) : std::make_unique<tensor::TensorGroup>(std::move(tensors));
    return submit({operation, type, elements, detail, std::move(called), alignment_of(type)}, std::move(whole),
                  deadline);
}

Result<Handle> Communicator::broadcast(void* data, std::size_t bytes, std::uint32_t root, Time deadline) {
    constexpr Operation operation = Operation::broadcast;
    if (root >= world_) {
        return refuse(operation, Reason::malformed,
                      // errors.md, calls, malformed
                      fmt::format("root {} is out of range; a world of {} ranks counts from 0", root, world_));
    }
    if (bytes == 0) return std::make_shared<Work>(operation, nullptr, net::now(), net::now());
    if (data == nullptr) return refuse(operation, Reason::malformed, "a buffer is NULL, but its size is above 0");
    const bool mine = rank_ == root;
    return submit({.operation = operation,
                   .elements = bytes,
                   .detail = root,
                   .text = fmt::format("{} of {} bytes with root {}", to_string(operation), bytes, root)},
                  tensor::make_broadcast_tensor(mine ? data : nullptr, mine ? nullptr : data, bytes, root), deadline);
}

Result<Handle> Communicator::barrier(Time deadline) {
    return submit({.operation = Operation::barrier, .elements = 1, .text = "barrier"},
                  tensor::make_broadcast_tensor(nullptr, nullptr, ATP_LANE_BYTES), deadline);
}

void Communicator::abort() {
    // errors.md, runs, closed: your program aborted the group or communicator
    const Error reason{.operation = Operation::wait, .reason = Reason::closed, .text = "the communicator was aborted"};
    end_channels(reason);
}

void Communicator::wake_channels() {
    if (host_ != nullptr) host_->wake();
    channels_.wake();
    gathers_.wake();
}

void Communicator::end_channels(const Error& reason) {
    if (host_ != nullptr) host_->abort(reason);
    channels_.abort(reason);
    gathers_.abort(reason);
}

std::vector<ChannelCounters> Communicator::counters() const {
    std::vector<ChannelCounters> counters;
    for (const ChannelSet* const set : {&channels_, &gathers_}) {
        for (const auto& channel : set->channels()) counters.push_back(channel->counters());
    }
    return counters;
}

bool Communicator::results_by_group() const {
    const auto by_group = [](const auto& channel) { return channel->counters().results_by_group; };
    return !channels_.empty() && std::ranges::all_of(channels_.channels(), by_group);
}

std::vector<std::string> Communicator::missing_features() const {
    std::vector<std::string> all;
    for (const ChannelSet* const set : {&channels_, &gathers_}) {
        for (const auto& channel : set->channels()) {
            std::ranges::move(channel->missing_features(), std::back_inserter(all));
        }
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

}  // namespace atp::comm
