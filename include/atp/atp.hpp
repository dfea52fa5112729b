// SPDX-License-Identifier: Apache-2.0
// ATP for C++17: owners, exceptions and types of elements over atp.h. Everything is inline; link libatp.
//
// Purpose: the functions of atp.h as classes. Each class owns one handle and moves, but does not copy.
// Ownership: memory of an operation stays the caller's, and must stay unchanged until the operation is done.
// Calling order, threads: as in atp.h. A Work may outlive its Communicator.
// Failure: a function that fails throws Error. Destructors throw nothing. No call waits without a deadline.
#ifndef ATP_ATP_HPP
#define ATP_ATP_HPP

#include <atp/atp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace atp {
inline namespace v1 {  // separates these names from names inside libatp

// A failure, with everything that atp_error holds.
class Error : public std::runtime_error {
  public:
    explicit Error(const atp_error& details)
        : std::runtime_error(std::string(atp_operation_name(details.operation)) + ": " +
                             atp_reason_name(details.reason) + (details.peer[0] == '\0' ? "" : " ") + details.peer +
                             (details.text[0] == '\0' ? "" : ": ") + details.text),
          details_(details) {}
    [[nodiscard]] int reason() const { return details_.reason; }  // enum atp_reason
    [[nodiscard]] const atp_error& details() const { return details_; }

  private:
    atp_error details_;
};

namespace detail {

template <class Handle, void (*destroy)(Handle*)>
struct Destroy {
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

template <class T>
struct ElementOf;
template <>
struct ElementOf<float> {
    static constexpr int value = ATP_ELEMENT_FLOAT32;
};
template <>
struct ElementOf<double> {
    static constexpr int value = ATP_ELEMENT_FLOAT64;
};
template <>
struct ElementOf<std::int32_t> {
    static constexpr int value = ATP_ELEMENT_INT32;
};
template <>
struct ElementOf<std::int64_t> {
    static constexpr int value = ATP_ELEMENT_INT64;
};

}  // namespace detail

using Timeout = std::chrono::milliseconds;
inline constexpr Timeout timeout_of_options{ATP_TIMEOUT_OF_OPTIONS};

// The struct of atp.h with its defaults. Pointers in it are read during the construction of a Communicator only.
struct Options : atp_options {
    Options() { atp_options_init(this, sizeof(atp_options)); }
};

// Serves stores over TCP, in a thread of its own. Keep it until every rank has formed its communicators.
class StoreServer {
  public:
    // "host:port"; port 0: any free port, see address().
    explicit StoreServer(const std::string& listen) {
        detail::call([&](atp_error* error) {
            atp_store_server* server = nullptr;
            const int reason = atp_store_server_start(listen.c_str(), &server, error);
            server_.reset(server);
            return reason;
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
        detail::call([&](atp_error* error) {
            atp_store* store = nullptr;
            const int reason = open(&store, error);
            store_.reset(store);
            return reason;
        });
    }
    detail::Owner<atp_store, atp_store_destroy> store_;
};

// An operation in flight. Its destructor forgets the handle. The operation continues, so its memory must stay valid.
class Work {
  public:
    explicit Work(atp_work* work) : work_(work) {}
    void wait() {
        detail::call([&](atp_error* error) { return atp_work_wait(work_.get(), error); });
    }
    // True if the operation is done. If it failed, throws its failure.
    [[nodiscard]] bool done() {
        int done = 0;
        detail::call([&](atp_error* error) { return atp_work_test(work_.get(), &done, error); });
        return done != 0;
    }

  private:
    detail::Owner<atp_work, atp_work_free> work_;
};

// Ranks that sum together. All ranks call the same operations in the same order.
class Communicator {
  public:
    // Returns when all ranks have called it, or throws by options.join_timeout_ms.
    Communicator(const Store& store, std::uint32_t rank, std::uint32_t world, const atp_options& options) {
        detail::call([&](atp_error* error) {
            atp_communicator* communicator = nullptr;
            const int reason = atp_communicator_create(store.get(), rank, world, &options, &communicator, error);
            communicator_.reset(communicator);
            return reason;
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

    // In place. T is float, double, std::int32_t or std::int64_t; 16-bit floats: atp_all_reduce().
    template <class T>
    void all_reduce(T* data, std::size_t elements, int reduction = ATP_REDUCTION_SUM,
                    Timeout timeout = timeout_of_options) {
        all_reduce(data, data, elements, reduction, timeout);
    }
    template <class T>
    void all_reduce(const T* in, T* out, std::size_t elements, int reduction = ATP_REDUCTION_SUM,
                    Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) {
            return atp_all_reduce(get(), in, out, elements, detail::ElementOf<T>::value, reduction, timeout.count(),
                                  error);
        });
    }
    template <class T>
    [[nodiscard]] Work all_reduce_async(const T* in, T* out, std::size_t elements, int reduction = ATP_REDUCTION_SUM,
                                        Timeout timeout = timeout_of_options) {
        atp_work* work = nullptr;
        detail::call([&](atp_error* error) {
            return atp_all_reduce_async(get(), in, out, elements, detail::ElementOf<T>::value, reduction,
                                        timeout.count(), &work, error);
        });
        return Work(work);
    }
    // Block r of `in` has counts[r] elements; its sum goes to `out` of rank r. `counts` has an entry for each rank.
    template <class T>
    void reduce_scatter(const T* in, T* out, const std::size_t* counts, int reduction = ATP_REDUCTION_SUM,
                        Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) {
            return atp_reduce_scatter(get(), in, out, counts, detail::ElementOf<T>::value, reduction, timeout.count(),
                                      error);
        });
    }
    // Block r of `out` has bytes[r] bytes, those of `in` of rank r. `bytes` has an entry for each rank.
    void all_gather(const void* in, void* out, const std::size_t* bytes, Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) { return atp_all_gather(get(), in, out, bytes, timeout.count(), error); });
    }
    // The sum goes to rank `root` alone.
    template <class T>
    void reduce(const T* in, T* out, std::size_t elements, std::uint32_t root, int reduction = ATP_REDUCTION_SUM,
                Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) {
            return atp_reduce(get(), in, out, elements, detail::ElementOf<T>::value, reduction, root, timeout.count(),
                              error);
        });
    }
    // Copies the bytes of rank `root` to all ranks, in place.
    void broadcast(void* data, std::size_t bytes, std::uint32_t root, Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) { return atp_broadcast(get(), data, bytes, root, timeout.count(), error); });
    }
    void barrier(Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) { return atp_barrier(get(), timeout.count(), error); });
    }
    template <class T>
    void push(std::uint64_t key, const T* values, std::size_t elements, Timeout timeout = timeout_of_options) {
        detail::call([&](atp_error* error) {
            return atp_push(get(), key, values, elements, detail::ElementOf<T>::value, timeout.count(), error);
        });
    }
    template <class T>
    void pull(std::uint64_t key, T* values, std::size_t elements) {
        detail::call([&](atp_error* error) {
            return atp_pull(get(), key, values, elements, detail::ElementOf<T>::value, error);
        });
    }

  private:
    detail::Owner<atp_communicator, atp_communicator_destroy> communicator_;
};

}  // namespace v1
}  // namespace atp

#endif
