// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel_driver.h"
#include "comm/channel_set.h"
#include "comm/feed.h"
#include "comm/host_driver.h"
#include "comm/host_formation.h"
#include "comm/operation_times.h"
#include "comm/options.h"
#include "comm/rank_counters.h"
#include "comm/rank_metrics.h"
#include "comm/work.h"
#include "numeric/element_type.h"
#include "numeric/fold.h"
#include "observe/log.h"
#include "observe/trace_file.h"
#include "store/rendezvous.h"
#include "store/store.h"
#include "switchd/node.h"
#include "tensor/chunks.h"
#include "tensor/dealt_tensor.h"
#include "tensor/number_fitter.h"

namespace atp::comm {

// The values are hashed into packets and are part of the protocol: docs/spec/numbers.md#purpose-of-an-operation. Those
// of numeric::FoldOperation follow.
enum class Reduction : std::uint8_t { sum = 0, average = 1, scaled = 2 };

// What the network adds, and by what each rank multiplies the sum.
struct Summing {
    Summing(Reduction kind) : reduction(kind) {}  // NOLINT(google-explicit-constructor): usually all that there is
    // The factor must be equal on all ranks.
    [[nodiscard]] static Summing scaled_by(double factor) {
        Summing summing(Reduction::scaled);
        summing.factor = factor;
        return summing;
    }

    Reduction reduction;
    double factor = 1;  // of Reduction::scaled
};
// "sum", "average" or "sum times 0.5".
[[nodiscard]] std::string to_string(const Summing& summing);

// Purpose field of every gradient of an operation. `elements`: number of elements of the whole operation, over all
// tensors and channels. `detail`: detail_of() mixed with the size of each tensor, or the root of a broadcast.
[[nodiscard]] std::uint16_t purpose_of(Operation operation, std::uint64_t elements, std::uint32_t detail);
[[nodiscard]] std::uint32_t detail_of(numeric::ElementType type, const Summing& summing);
[[nodiscard]] std::uint32_t detail_of(numeric::FoldType type, numeric::FoldOperation operation);
// Lanes of an element, which no cut may separate.
[[nodiscard]] std::uint64_t alignment_of(numeric::ElementType type);

// Limit of a rank's bytes in an operation that the ranks fold: each rank receives those of all ranks.
inline constexpr std::size_t longest_fold = std::size_t{64} << 10U;

// Elements in the caller's memory. `in` and `out` are equal or do not overlap.
struct Buffer {
    const void* in = nullptr;
    void* out = nullptr;
    std::size_t elements = 0;
};

// Parameters that the ranks agreed on when they formed the communicator.
struct Formation {
    std::optional<std::uint32_t> job{};  // drawn by rank 0; nullopt: the ranks have not met
    std::uint32_t channels = 0;
    std::uint32_t lanes = 0;
    std::uint32_t window = 0;
    std::uint32_t aggregators = 0;
    std::uint32_t units = 0;
    std::uint32_t levels = 0;
    // The ranks share the memory of one host: no channels, no packets, and no switch.
    bool on_host = false;
    // Ranks that share memory with this one, itself included. The first of them has the channels.
    std::uint32_t host_ranks = 1;
    // Where the sums are added: "memory", or a control::LayoutKind.
    std::string layout{};
};

// Group of ranks that sum tensors in the network.
//
// Ownership: owns its channels, with one thread each, or its part of the memory of a host. Borrows the memory of an
//   operation until Work::done().
// Calling order: form() on every rank with equal options; then equal operations in equal order on every rank; then the
//   destructor. Operations return at once and run in the order of their calls.
// Threads: any thread may call an operation. All ranks need the same order, so usually one thread calls them all.
// Failure: each operation ends by its deadline, with a result or an error that names the operation, the peer and the
//   elapsed time. If ranks call different operations, the operation fails. After an error no operation succeeds: the
//   remaining ranks form another communicator with the next generation.
class Communicator {
  public:
    // Forms on this host if all ranks can share its memory, otherwise over the network.
    [[nodiscard]] static Result<std::unique_ptr<Communicator>> form(store::Store& store, std::uint32_t rank,
                                                                    std::uint32_t world, const Options& options);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    [[nodiscard]] std::uint32_t rank() const { return rank_; }
    [[nodiscard]] std::uint32_t world() const { return world_; }
    [[nodiscard]] const Options& options() const { return options_; }
    [[nodiscard]] const Formation& formation() const { return formation_; }

    // A deadline of `never` means Options::timeout from now on. An average of integers is refused.
    [[nodiscard]] Result<Handle> all_reduce(const Buffer& buffer, numeric::ElementType type, const Summing& summing,
                                            Time deadline = never);
    // Several tensors as one operation: small tensors share packets.
    [[nodiscard]] Result<Handle> all_reduce(std::span<const Buffer> buffers, numeric::ElementType type,
                                            const Summing& summing, Time deadline = never);
    // What no switch can add: gathers up to longest_fold bytes of each rank, which each rank folds in rank order, so
    // that all ranks have equal bits.
    [[nodiscard]] Result<Handle> all_reduce(std::span<const Buffer> buffers, numeric::FoldType type,
                                            numeric::FoldOperation operation, Time deadline = never);
    // Tensors of the caller, whose elements become ready as the caller notifies feed(). The tensors apply factor()
    // themselves. Integer tensors receive the sum, also for an average.
    [[nodiscard]] Result<Handle> all_reduce(std::vector<std::unique_ptr<protocol::Tensor>> tensors,
                                            std::uint64_t elements, numeric::ElementType type, const Summing& summing,
                                            Time deadline = never);
    // Block r of `in` has counts[r] elements, and its sum goes to `out` of rank r. Blocks follow each other. `counts`
    // is equal on all ranks.
    [[nodiscard]] Result<Handle> reduce_scatter(const void* in, void* out, std::span<const std::size_t> counts,
                                                numeric::ElementType type, const Summing& summing,
                                                Time deadline = never);
    // Block r of `out` has bytes[r] bytes, which rank r passes as `in`. `bytes` is equal on all ranks.
    [[nodiscard]] Result<Handle> all_gather(const void* in, void* out, std::span<const std::size_t> bytes,
                                            Time deadline = never);
    // The sum goes only to `root`; the other ranks need no `out`.
    [[nodiscard]] Result<Handle> reduce(const Buffer& buffer, numeric::ElementType type, const Summing& summing,
                                        std::uint32_t root, Time deadline = never);
    // Copies the bytes of rank `root` to all ranks, in place.
    [[nodiscard]] Result<Handle> broadcast(void* data, std::size_t bytes, std::uint32_t root, Time deadline = never);
    [[nodiscard]] Result<Handle> barrier(Time deadline = never);

    // Operations of a parameter server. push() adds the values of this rank to the key's sum of this round. pull()
    // waits for the sum of the last push() and copies it. Every rank pushes all keys in the same order.
    [[nodiscard]] Result<void> push(std::uint64_t key, const void* values, std::size_t elements,
                                    numeric::ElementType type, Time deadline = never);
    [[nodiscard]] Result<void> pull(std::uint64_t key, void* values, std::size_t elements, numeric::ElementType type);

    [[nodiscard]] const std::shared_ptr<Feed>& feed() const { return feed_; }
    // Arguments of tensor::make_sum_tensor() for tensors of the caller. fits_numbers() is true if scaled values are
    // sent in another form than round(x * scale()) in 32 bits.
    [[nodiscard]] bool fits_numbers() const {
        return options_.scaling == tensor::Scaling::dynamic || tensor::is_narrow(options_.lane_type);
    }
    [[nodiscard]] float scale() const { return static_cast<float>(options_.scale); }
    [[nodiscard]] double factor(const Summing& summing) const {
        return summing.reduction == Reduction::average ? 1.0 / world_ : summing.factor;
    }

    // Ends the channels of this rank. Operations in flight fail with Reason::closed.
    void abort();

    // Of this rank: of its channels, its part of the host's memory and the servers that it runs for the job. Counters
    // of datagrams are at most 0.1 s old.
    [[nodiscard]] RankCounters rank_counters() const;
    // Of the channels, then of the gather channels.
    [[nodiscard]] std::vector<ChannelCounters> counters() const;
    // True if the last result of every channel, but for gather channels, came by multicast. False if at least one came
    // as a unicast copy, or if this rank has no channel.
    [[nodiscard]] bool results_by_group() const;
    // Features that the kernel refused to the sockets of this rank, and why: "gso: ...". Operations work without them,
    // but slower.
    [[nodiscard]] std::vector<std::string> missing_features() const;
    // nullptr: none. The last packets are in it after the destructor of this object.
    [[nodiscard]] const std::shared_ptr<observe::TraceFile>& trace() const { return trace_; }

  private:
    friend class Feed;
    struct Key {
        numeric::ElementType type = numeric::ElementType::float32;
        std::size_t elements = 0;
        std::vector<std::byte> values;
        Handle work;
    };

    Communicator(std::uint32_t rank, std::uint32_t world, const Options& options);
    [[nodiscard]] Result<void> set_up(store::Rendezvous& rendezvous, Time deadline);
    [[nodiscard]] Result<void> set_up_over_network(store::Rendezvous& rendezvous, Meeting& meeting, Time deadline);
    // Of a rank that speaks for its host.
    [[nodiscard]] Result<wire::JobPlan> open_channels(store::Rendezvous& rendezvous, const Meeting& meeting,
                                                      Time deadline);
    void adopt(const wire::JobPlan& plan);
    void share_network(Meeting& meeting);
    void start_host(Meeting& meeting, std::optional<HostNetwork> network);
    [[nodiscard]] Result<void> open_trace();
    void show_metrics();
    void log_ready();
    void end_service();
    // The number of the job, once it is known, and the rank; then `more`.
    [[nodiscard]] std::vector<observe::LogField> fields(std::vector<observe::LogField> more = {}) const;
    void log_reason(observe::LogEvent event, std::string reason);
    void log_failure(const Error& error);
    void log_slow(const std::string& text);
    // Floats pass all switches unadded, which a user must learn once.
    void log_floats(const protocol::WorkerCounters& counters);
    void log_int32_lanes();
    // float64 is sent as float32, which a user must learn once.
    void log_type(numeric::ElementType type);
    [[nodiscard]] Result<void> wait_ready(ChannelDriver& channel, store::Rendezvous& rendezvous, Time begin,
                                          Time deadline) const;
    // What must be equal in the calls of all ranks.
    struct OperationCall {
        Operation operation = Operation::all_reduce;
        numeric::ElementType type = numeric::ElementType::int32;
        std::uint64_t elements = 0;
        std::uint32_t detail = 0;
        std::string text{};
        std::uint64_t alignment = 1;  // a tensor is cut at multiples of it
        std::function<std::optional<Error>()> last_step{};
    };
    [[nodiscard]] Result<Handle> submit(OperationCall call, std::unique_ptr<protocol::Tensor> tensor, Time deadline);
    // Both under the lock `order_`.
    [[nodiscard]] tensor::NumberFitter::Fitted fit(const OperationCall& call, std::unique_ptr<protocol::Tensor> tensor);
    [[nodiscard]] Handle submit_fitted(const OperationCall& call, tensor::NumberFitter::Fitted fitted, Time deadline);
    [[nodiscard]] static tensor::OperationKind kind_of(const OperationCall& call) {
        return {static_cast<std::uint32_t>(call.operation), call.detail, call.elements};
    }
    // The tensors beside that of the work are works of their own: the memory takes one part of a work at a time.
    // `purpose`: theirs.
    void submit_on_host(const Handle& work, tensor::NumberFitter::Fitted fitted, std::uint16_t purpose,
                        std::uint64_t alignment);
    void add_slices(Work& work, const protocol::Tensor& tensor, std::uint16_t purpose, std::uint64_t alignment) const;
    void add_beside(Work& work, std::unique_ptr<protocol::Tensor> tensor, std::uint16_t purpose) const;
    void submit_in_order(const Handle& work, std::uint16_t purpose);
    void finish_order_barriers();

    // sealed.cc: operations of which the ranks prove the sums.
    void prepare_seal(const store::Rendezvous& rendezvous, const Meeting& meeting);
    [[nodiscard]] bool seals() const { return seal_keys_.has_value() && !formation_.on_host; }
    // All under the lock `order_`. The check becomes the last step of the call, before the one that it has.
    [[nodiscard]] std::shared_ptr<tensor::OperationSeal> seal_of(const OperationCall& call) const;
    [[nodiscard]] tensor::NumberFitter::Fitted fit_sealed(OperationCall& call,
                                                          std::unique_ptr<protocol::Tensor> tensor);
    [[nodiscard]] tensor::NumberFitter::Fitted gather_sealed(OperationCall& call,
                                                             std::vector<tensor::DealtTensor::Block> blocks,
                                                             const tensor::DealtTensor::Rules& rules);
    void prove(OperationCall& call, tensor::NumberFitter::Fitted& fitted,
               const std::shared_ptr<tensor::OperationSeal>& seal);
    // What this rank keeps of the sums of `in`.
    struct PartOfSums {
        const void* in = nullptr;
        void* out = nullptr;
        std::size_t first = 0;  // element
        std::size_t elements = 0;
    };
    [[nodiscard]] Result<Handle> sum_sealed(OperationCall call, const PartOfSums& part, const Summing& summing,
                                            Time deadline);
    [[nodiscard]] std::optional<Error> error_of_seal(tensor::OperationSeal::SealFinding proof, Operation operation,
                                                     const std::string& called) const;

    void note_failed_proof(const Error& error);
    // The first one, after which no operation begins.
    [[nodiscard]] std::optional<Error> failed_proof() const;
    // An operation failed.
    void end_after(const Error& error);

    struct DealtCall;
    // sharded.cc: operations whose parts have owners.
    [[nodiscard]] Result<Handle> submit_dealt(DealtCall call, Time deadline);
    [[nodiscard]] tensor::DealtTensor::Rules rules_of_deal(bool gathers, std::uint8_t form) const;
    [[nodiscard]] tensor::DealtTensor::Block block_of(std::unique_ptr<protocol::Tensor> tensor,
                                                      std::uint32_t owner) const;

    [[nodiscard]] std::uint64_t payload_lanes() const { return formation_.lanes - (options_.audit ? 1U : 0U); }
    // Elements of a full fragment of this form.
    [[nodiscard]] std::uint64_t fragment_elements(std::uint8_t form) const {
        return payload_lanes() * atp_elements_per_word(form);
    }

    void wake_channels();
    void end_channels(const Error& reason);

    // Lines that the log gets once, or not too often, although several threads find their reason.
    struct Logged {
        std::atomic<bool> float64{false};         // float64 is rounded
        std::atomic<bool> floats{false};          // many fragments are sent as floats
        std::atomic<bool> int32{false};           // narrow integers are sent as int32
        std::atomic<Duration::rep> next_slow{0};  // earliest time of the next line about a slow rank
    };

    std::uint32_t rank_;
    std::uint32_t world_;
    Options options_;
    Formation formation_;
    std::shared_ptr<observe::Log> log_;
    std::shared_ptr<observe::TraceFile> trace_;  // nullptr: none
    std::atomic<bool> failed_{false};            // the log has the first failure
    Logged logged_;
    std::shared_ptr<OperationTimes> times_ = std::make_shared<OperationTimes>();
    std::shared_ptr<Feed> feed_ = std::make_shared<Feed>(*this);
    std::shared_ptr<HostDriver> host_;          // nullptr: this rank shares no memory
    std::optional<tensor::ChunkRules> chunks_;  // some ranks of the job share memory; nullopt: none do
    std::vector<std::uint16_t> members_;        // by rank, the member of the network that stands for it; empty: itself
    std::shared_ptr<const crypto::TenantKey> join_key_;        // with which channels join; nullptr: none
    std::vector<std::unique_ptr<switchd::SwitchNode>> nodes_;  // servers and switches that this rank runs for the job
    ChannelSet channels_;
    // As many more, for all-gathers: these fill downlinks, while a reduce-scatter of other channels fills uplinks. They
    // join with the first all-gather. Empty if ranks share memory.
    ChannelSet gathers_;
    mutable std::mutex failed_proof_mutex_;
    std::optional<Error> failed_proof_;
    std::optional<tensor::SealKeys> seal_keys_;  // nullopt: ranks prove nothing
    std::vector<std::string> switches_;          // that ranks of a sealed job name
    std::mutex order_;                           // gives all channels the operations in one order
    std::uint64_t calls_ = 0;                    // operations submitted; `order_` guards it, and all below
    bool gathering_ = false;                     // the last operation was one for gathers_
    std::array<Handle, 2> order_barriers_{};  // the last of submit_in_order() in channels_ and gathers_; nullptr: none
    tensor::NumberFitter fitter_;             // `order_` guards it
    std::mutex keys_mutex_;
    std::map<std::uint64_t, Key> keys_;
    std::unique_ptr<MetricsEntry> metrics_;  // last: it reads the others
};

}  // namespace atp::comm
