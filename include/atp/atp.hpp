// SPDX-License-Identifier: Apache-2.0
// ATP for C++17: owners, exceptions, ranges and types of elements over atp.h. Everything is inline; link libatp.
//
// Purpose: the functions of atp.h as classes. Each class owns one handle and moves, but does not copy.
// Tensors: a function takes any range whose elements follow each other in memory, such as a vector, an array or a span.
//   `atp::span(pointer, size)` is one. In place, it takes one range, otherwise two, of one type and one size.
// Ownership: memory of an operation stays the caller's, and must stay unchanged until the operation is done.
// Calling order, threads: as in atp.h. A Work may outlive its Communicator.
// Failure: a function that fails throws Error. Destructors throw nothing. No call waits without a deadline.
#ifndef ATP_ATP_HPP
#define ATP_ATP_HPP

#include <atp/atp.h>
#include <atp/elements.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace atp {
inline namespace v1 {  // separates these names from names inside libatp

// ------------------------------------------------------------------------------------------------------------ Errors

// A failure, with everything that atp_error holds.
class Error : public std::runtime_error {
  public:
    explicit Error(const atp_error& details)
        : std::runtime_error(std::string(atp_operation_name(details.operation)) + ": " +
                             atp_reason_name(details.reason) + (details.peer[0] == '\0' ? "" : " ") + details.peer +
                             (details.text[0] == '\0' ? "" : ": ") + details.text),
          details_(details) {}
    [[nodiscard]] atp_reason reason() const { return static_cast<atp_reason>(details_.reason); }
    [[nodiscard]] atp_operation operation() const { return static_cast<atp_operation>(details_.operation); }
    // The rank, address or name at fault, such as "rank 3"; empty: none.
    [[nodiscard]] std::string peer() const { return details_.peer; }
    [[nodiscard]] std::string text() const { return details_.text; }
    [[nodiscard]] std::chrono::duration<double, std::milli> elapsed() const {
        return std::chrono::duration<double, std::milli>(details_.elapsed_ms);
    }
    [[nodiscard]] const atp_error& details() const { return details_; }

  private:
    atp_error details_;
};

namespace detail {

// `uses` must outlive the handle.
template <class Handle, void (*destroy)(Handle*)>
struct Destroy {
    std::shared_ptr<const void> uses{};
    void operator()(Handle* handle) const { destroy(handle); }
};
template <class Handle, void (*destroy)(Handle*)>
using Owner = std::unique_ptr<Handle, Destroy<Handle, destroy>>;

// Calls `function` with an atp_error, and throws what it reports.
template <class Function>
void call(const Function& function) {
    atp_error error{};
    if (function(&error) != ATP_REASON_NONE) throw Error(error);
}

// Calls `function` with a pointer for a handle too, which `owner` then has.
template <class Handle, void (*destroy)(Handle*), class Function>
void open(Owner<Handle, destroy>& owner, const Function& function) {
    call([&](atp_error* error) {
        Handle* handle = nullptr;
        const int reason = function(&handle, error);
        owner.reset(handle);
        return reason;
    });
}

inline void require(bool fits, atp_operation operation, const char* text) {
    if (fits) return;
    atp_error error{};
    error.operation = operation;
    error.reason = ATP_REASON_MALFORMED;
    std::snprintf(error.text, sizeof error.text, "%s", text);
    throw Error(error);
}

// The type of a range's elements. Other arguments have none, which chooses between overloads.
template <class Range>
using Element = std::remove_cv_t<std::remove_reference_t<decltype(*std::data(std::declval<Range&>()))>>;

template <class In, class Out>
std::size_t common_size(const In& in, const Out& out, atp_operation operation) {
    static_assert(std::is_same_v<Element<In>, Element<Out>>, "both tensors must have one type of elements");
    require(std::size(in) == std::size(out), operation, "`in` and `out` differ in their sizes");
    return std::size(in);
}

}  // namespace detail

// A tensor of a group.
template <class T>
class Buffer : public atp_buffer {
  public:
    template <class Data, class = detail::Element<Data>>
    explicit Buffer(Data&& data) : atp_buffer{std::data(data), std::data(data), std::size(data)} {}
    template <class In, class Out>
    Buffer(const In& from, Out&& to)
        : atp_buffer{std::data(from), std::data(to), detail::common_size(from, to, ATP_OPERATION_ALL_REDUCE)} {}
};
template <class Data>
explicit Buffer(Data&&) -> Buffer<detail::Element<Data>>;
template <class In, class Out>
Buffer(const In&, Out&&) -> Buffer<detail::Element<In>>;

// ------------------------------------------------------------------------------------------------------------- Owners

using Timeout = std::chrono::milliseconds;
inline constexpr Timeout timeout_of_options{ATP_TIMEOUT_OF_OPTIONS};

// Gets the lines of a rank's log. Several threads may call it at once. It must return soon, and must not call a
// Communicator; what it throws is lost.
using LogReceiver = std::function<void(atp_severity severity, std::string_view line)>;

// The struct of atp.h with its defaults. Pointers in it are read during the construction of a Communicator only.
struct Options : atp_options {
    Options() : atp_options{} { atp_options_init(this, sizeof(atp_options)); }
};

// Serves stores over TCP, in a thread of its own. Keep it until every rank has formed its communicators.
class StoreServer {
  public:
    // "host:port"; port 0: any free port, see address().
    explicit StoreServer(const std::string& listen) {
        detail::open(server_, [&](atp_store_server** server, atp_error* error) {
            return atp_store_server_start(listen.c_str(), server, error);
        });
    }
    [[nodiscard]] std::string address() const { return atp_store_server_address(server_.get()); }

  private:
    detail::Owner<atp_store_server, atp_store_server_destroy> server_;
};

// The store through which ranks find each other. One thread at a time uses it, except for in_memory().
class Store {
  public:
    // Connects to a StoreServer. Tries until `timeout`, since ranks start in any order.
    [[nodiscard]] static Store connect(const std::string& address, Timeout timeout = std::chrono::seconds(30)) {
        return Store([&](atp_store** store, atp_error* error) {
            return atp_store_connect(address.c_str(), timeout.count(), store, error);
        });
    }
    // A store for ranks that are threads of this process.
    [[nodiscard]] static Store in_memory() { return Store(atp_store_in_memory); }
    [[nodiscard]] static Store from_callbacks(const atp_store_callbacks& callbacks) {
        return Store(
            [&](atp_store** store, atp_error* error) { return atp_store_from_callbacks(&callbacks, store, error); });
    }
    [[nodiscard]] atp_store* get() const { return store_.get(); }

  private:
    template <class Open>
    explicit Store(const Open& open) {
        detail::open(store_, open);
    }
    detail::Owner<atp_store, atp_store_destroy> store_;
};

// An operation in flight. Its destructor forgets the handle. The operation continues, so its memory must stay valid.
class Work {
  public:
    void wait() {
        detail::call([&](atp_error* error) { return atp_work_wait(work_.get(), error); });
    }
    // True if the operation is done. If it failed, throws its failure.
    [[nodiscard]] bool done() {
        int done = 0;
        detail::call([&](atp_error* error) { return atp_work_test(work_.get(), &done, error); });
        return done != 0;
    }
    [[nodiscard]] atp_work* get() const { return work_.get(); }

  private:
    friend class Communicator;
    explicit Work(const std::shared_ptr<const void>& uses) : work_(nullptr, {uses}) {}
    detail::Owner<atp_work, atp_work_free> work_;
};

// Ranks that sum together. All ranks call the same operations in the same order. A function with `_async` returns
// before its operation is done.
class Communicator {
  public:
    // Returns when all ranks have called it, or throws by options.join_timeout_ms.
    Communicator(const Store& store, std::uint32_t rank, std::uint32_t world, atp_options options,
                 LogReceiver log = {}) {
        if (log) {
            const auto receiver = std::make_shared<LogReceiver>(std::move(log));
            options.log_context = receiver.get();
            options.log_receiver = receive;
            communicator_.get_deleter().uses = receiver;
        }
        detail::open(communicator_, [&](atp_communicator** communicator, atp_error* error) {
            return atp_communicator_create(store.get(), rank, world, &options, communicator, error);
        });
    }
    [[nodiscard]] std::uint32_t rank() const { return atp_communicator_rank(get()); }
    [[nodiscard]] std::uint32_t world() const { return atp_communicator_world(get()); }
    [[nodiscard]] atp_communicator* get() const { return communicator_.get(); }
    [[nodiscard]] atp_counters counters() const {
        atp_counters counters{};
        atp_communicator_counters(get(), &counters, sizeof counters);
        return counters;
    }
    // Ends operations in flight with ATP_REASON_CLOSED and leaves the job. From any thread.
    void abort() { atp_communicator_abort(get()); }

    template <class Data, class = detail::Element<Data>>
    void all_reduce(Data&& data, atp_reduction reduction = ATP_REDUCTION_SUM, Timeout timeout = timeout_of_options) {
        all_reduce(data, data, reduction, timeout);
    }
    template <class In, class Out, class = detail::Element<Out>>
    void all_reduce(const In& in, Out&& out, atp_reduction reduction = ATP_REDUCTION_SUM,
                    Timeout timeout = timeout_of_options) {
        all_reduce_async(in, out, reduction, timeout).wait();
    }
    template <class Data, class = detail::Element<Data>>
    [[nodiscard]] Work all_reduce_async(Data&& data, atp_reduction reduction = ATP_REDUCTION_SUM,
                                        Timeout timeout = timeout_of_options) {
        return all_reduce_async(data, data, reduction, timeout);
    }
    template <class In, class Out, class = detail::Element<Out>>
    [[nodiscard]] Work all_reduce_async(const In& in, Out&& out, atp_reduction reduction = ATP_REDUCTION_SUM,
                                        Timeout timeout = timeout_of_options) {
        const std::size_t size = detail::common_size(in, out, ATP_OPERATION_ALL_REDUCE);
        return begin([&](atp_work** work, atp_error* error) {
            return atp_all_reduce_async(get(), std::data(in), std::data(out), size, element<Out>(), reduction,
                                        timeout.count(), work, error);
        });
    }

    // Several tensors as one operation: a range of Buffer, whose elements have one type.
    template <class Buffers>
    void all_reduce_group(const Buffers& buffers, atp_reduction reduction = ATP_REDUCTION_SUM,
                          Timeout timeout = timeout_of_options) {
        all_reduce_group_async(buffers, reduction, timeout).wait();
    }
    template <class Buffers>
    [[nodiscard]] Work all_reduce_group_async(const Buffers& buffers, atp_reduction reduction = ATP_REDUCTION_SUM,
                                              Timeout timeout = timeout_of_options) {
        return begin_group(std::data(buffers), std::size(buffers), reduction, timeout);
    }

    // The sum of block r of `in` goes to `out` of rank r. `counts` has the elements of each block; without it, blocks
    // have the size of `out`.
    template <class In, class Out, class = detail::Element<Out>>
    void reduce_scatter(const In& in, Out&& out, atp_reduction reduction = ATP_REDUCTION_SUM,
                        Timeout timeout = timeout_of_options) {
        reduce_scatter_async(in, out, equal_blocks(out), reduction, timeout).wait();
    }
    template <class In, class Out, class Counts, class = detail::Element<Counts>>
    void reduce_scatter(const In& in, Out&& out, const Counts& counts, atp_reduction reduction = ATP_REDUCTION_SUM,
                        Timeout timeout = timeout_of_options) {
        reduce_scatter_async(in, out, counts, reduction, timeout).wait();
    }
    template <class In, class Out, class Counts, class = detail::Element<Counts>>
    [[nodiscard]] Work reduce_scatter_async(const In& in, Out&& out, const Counts& counts,
                                            atp_reduction reduction = ATP_REDUCTION_SUM,
                                            Timeout timeout = timeout_of_options) {
        check_blocks(out, in, counts, ATP_OPERATION_REDUCE_SCATTER);
        return begin([&](atp_work** work, atp_error* error) {
            return atp_reduce_scatter_async(get(), std::data(in), std::data(out), std::data(counts), element<Out>(),
                                            reduction, timeout.count(), work, error);
        });
    }

    // Block r of `out` gets `in` of rank r. `counts` has the elements of each block; without it, blocks have the size
    // of `in`. Elements have any type that can be copied as bytes.
    template <class In, class Out>
    void all_gather(const In& in, Out&& out, Timeout timeout = timeout_of_options) {
        all_gather_async(in, out, equal_blocks(in), timeout).wait();
    }
    template <class In, class Out, class Counts, class = detail::Element<Counts>>
    void all_gather(const In& in, Out&& out, const Counts& counts, Timeout timeout = timeout_of_options) {
        all_gather_async(in, out, counts, timeout).wait();
    }
    template <class In, class Out, class Counts, class = detail::Element<Counts>>
    [[nodiscard]] Work all_gather_async(const In& in, Out&& out, const Counts& counts,
                                        Timeout timeout = timeout_of_options) {
        check_blocks(in, out, counts, ATP_OPERATION_ALL_GATHER);
        std::vector<std::size_t> bytes(std::begin(counts), std::end(counts));
        for (std::size_t& size : bytes) size *= bytes_of_one<In>();
        return begin([&](atp_work** work, atp_error* error) {
            return atp_all_gather_async(get(), std::data(in), std::data(out), bytes.data(), timeout.count(), work,
                                        error);
        });
    }

    // The sum goes to `out` of rank `root` only. On other ranks, `out` may be empty.
    template <class In, class Out, class = detail::Element<Out>>
    void reduce(const In& in, Out&& out, std::uint32_t root, atp_reduction reduction = ATP_REDUCTION_SUM,
                Timeout timeout = timeout_of_options) {
        reduce_async(in, out, root, reduction, timeout).wait();
    }
    template <class In, class Out, class = detail::Element<Out>>
    [[nodiscard]] Work reduce_async(const In& in, Out&& out, std::uint32_t root,
                                    atp_reduction reduction = ATP_REDUCTION_SUM, Timeout timeout = timeout_of_options) {
        if (rank() == root) static_cast<void>(detail::common_size(in, out, ATP_OPERATION_REDUCE));
        return begin([&](atp_work** work, atp_error* error) {
            return atp_reduce_async(get(), std::data(in), std::data(out), std::size(in), element<In>(), reduction, root,
                                    timeout.count(), work, error);
        });
    }

    // Copies the elements of rank `root` to all ranks, in place, whatever their type.
    template <class Data>
    void broadcast(Data&& data, std::uint32_t root, Timeout timeout = timeout_of_options) {
        broadcast_async(data, root, timeout).wait();
    }
    template <class Data>
    [[nodiscard]] Work broadcast_async(Data&& data, std::uint32_t root, Timeout timeout = timeout_of_options) {
        return begin([&](atp_work** work, atp_error* error) {
            return atp_broadcast_async(get(), std::data(data), std::size(data) * bytes_of_one<Data>(), root,
                                       timeout.count(), work, error);
        });
    }

    void barrier(Timeout timeout = timeout_of_options) { barrier_async(timeout).wait(); }
    [[nodiscard]] Work barrier_async(Timeout timeout = timeout_of_options) {
        return begin(
            [&](atp_work** work, atp_error* error) { return atp_barrier_async(get(), timeout.count(), work, error); });
    }

    // Sums by key, as atp_push() and atp_pull() do.
    template <class Values>
    void push(std::uint64_t key, const Values& values, Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) {
            return atp_push(get(), key, std::data(values), std::size(values), element<Values>(), timeout.count(),
                            error);
        });
    }
    template <class Values>
    void pull(std::uint64_t key, Values&& values) {
        detail::call([&](atp_error* error) {
            return atp_pull(get(), key, std::data(values), std::size(values), element<Values>(), error);
        });
    }

  private:
    static void receive(void* context, int severity, const char* line) {
        try {
            (*static_cast<const LogReceiver*>(context))(static_cast<atp_severity>(severity), line);
        } catch (...) {
            return;  // the caller is C
        }
    }
    template <class Range>
    [[nodiscard]] static constexpr int element() {
        return ElementOf<detail::Element<Range>>::value;
    }
    template <class Range>
    [[nodiscard]] static constexpr std::size_t bytes_of_one() {
        static_assert(std::is_trivially_copyable_v<detail::Element<Range>>, "bytes are copied");
        return sizeof(detail::Element<Range>);
    }
    template <class Block>
    [[nodiscard]] std::vector<std::size_t> equal_blocks(const Block& block) const {
        return std::vector<std::size_t>(world(), std::size(block));
    }
    // `own` is one block, this rank's, and `all` has one of each rank.
    template <class Own, class All, class Counts>
    void check_blocks(const Own& own, const All& all, const Counts& counts, atp_operation operation) const {
        static_assert(std::is_same_v<detail::Element<Own>, detail::Element<All>>, "tensors must have one type");
        static_assert(std::is_same_v<detail::Element<Counts>, std::size_t>, "counts are of type std::size_t");
        detail::require(std::size(counts) == world(), operation, "`counts` has no entry for each rank");
        detail::require(std::data(counts)[rank()] == std::size(own), operation,
                        "the tensor of one block differs in its size from `counts`");
        detail::require(std::accumulate(std::begin(counts), std::end(counts), std::size_t{0}) == std::size(all),
                        operation, "the tensor of all blocks differs in its size from the sum of `counts`");
    }
    template <class T>
    [[nodiscard]] Work begin_group(const Buffer<T>* buffers, std::size_t size, atp_reduction reduction,
                                   Timeout timeout) {
        static_assert(sizeof(Buffer<T>) == sizeof(atp_buffer), "an array of one is an array of the other");
        return begin([&](atp_work** work, atp_error* error) {
            return atp_all_reduce_group_async(get(), buffers, size, ElementOf<T>::value, reduction, timeout.count(),
                                              work, error);
        });
    }
    template <class Begin>
    [[nodiscard]] Work begin(const Begin& begin) {
        Work work(communicator_.get_deleter().uses);
        detail::open(work.work_, begin);
        return work;
    }

    detail::Owner<atp_communicator, atp_communicator_destroy> communicator_;
};

}  // namespace v1
}  // namespace atp

#endif
