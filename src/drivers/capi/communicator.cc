// SPDX-License-Identifier: Apache-2.0
#include "capi/communicator.h"

#include <atp/atp.h>

#include <utility>
#include <vector>

#include "capi/convert.h"
#include "capi/counters.h"
#include "capi/store.h"

namespace {

using atp::capi::deadline_from;
using atp::capi::guarded;
using atp::capi::malformed;
using atp::comm::Handle;

template <class Begin>
int wait_for(atp_communicator* communicator, atp_error* error, const Begin& begin) noexcept {
    return guarded(error, [&]() -> atp::Result<void> {
        if (communicator == nullptr) return tl::unexpected(malformed("`communicator` is NULL"));
        const atp::Result<Handle> handle = begin(*communicator->communicator);
        return handle ? (*handle)->wait() : atp::Result<void>(tl::unexpected(handle.error()));
    });
}

template <class Begin>
int hand_out(atp_communicator* communicator, atp_work** work, atp_error* error, const Begin& begin) noexcept {
    if (work != nullptr) *work = nullptr;
    return guarded(error, [&]() -> atp::Result<void> {
        if (communicator == nullptr || work == nullptr) {
            return tl::unexpected(malformed("`communicator` or `work` is NULL"));
        }
        // Allocated before the operation begins: after a later exception the caller would have no handle of it.
        auto handed = std::make_unique<atp_work>();
        atp::Result<Handle> handle = begin(*communicator->communicator);
        if (!handle) return tl::unexpected(handle.error());
        handed->handle = *std::move(handle);
        *work = handed.release();
        return {};
    });
}

// What begins an operation, for wait_for() or hand_out(). The first ones name what a sum is made of.

using Begun = atp::Result<Handle>;
using atp::comm::Communicator;

template <class Begin>
auto summing(int element, int reduction, const Begin& begin) {
    return [=](Communicator& communicator) -> Begun {
        const auto type = atp::capi::element_from(element);
        const auto how = atp::capi::reduction_from(reduction);
        if (type && how) return begin(communicator, *type, *how);
        if (type && atp::capi::fold_operation_from(reduction)) {
            // errors.md, calls, unsupported
            return atp::fail(atp::Operation::parse, atp::Reason::unsupported, {},
                             "only an all_reduce has this `reduction`: use a sum or an average");
        }
        // errors.md, calls, malformed
        return tl::unexpected(malformed("`element` or `reduction` is out of range; use the constants of atp.h"));
    };
}

auto all_reduce(const atp_buffer* buffers, std::size_t count, int element, int reduction, std::int64_t timeout_ms) {
    const auto all = [=](Communicator& communicator, auto type, auto how) -> Begun {
        if (buffers == nullptr && count != 0) {
            return tl::unexpected(malformed("`buffers` is NULL, but `count` is above 0"));
        }
        std::vector<atp::comm::Buffer> list(count);
        for (std::size_t i = 0; i < count; ++i) list[i] = {buffers[i].in, buffers[i].out, buffers[i].elements};
        return communicator.all_reduce(list, type, how, deadline_from(timeout_ms));
    };
    return [=](Communicator& communicator) -> Begun {
        const auto type = atp::capi::element_from(element);
        const auto fold = atp::capi::fold_operation_from(reduction);
        if (type && fold) return all(communicator, atp::numeric::fold_type_of(*type), *fold);
        return summing(element, reduction, all)(communicator);
    };
}

auto reduce_scatter(const void* in, void* out, const std::size_t* counts, int element, int reduction,
                    std::int64_t timeout_ms) {
    return summing(element, reduction, [=](Communicator& communicator, auto type, auto how) -> Begun {
        if (counts == nullptr) return tl::unexpected(malformed("`counts` is NULL"));
        return communicator.reduce_scatter(in, out, {counts, communicator.world()}, type, how,
                                           deadline_from(timeout_ms));
    });
}

auto reduce(const atp::comm::Buffer& buffer, int element, int reduction, std::uint32_t root, std::int64_t timeout_ms) {
    return summing(element, reduction, [=](Communicator& communicator, auto type, auto how) {
        return communicator.reduce(buffer, type, how, root, deadline_from(timeout_ms));
    });
}

auto all_gather(const void* in, void* out, const std::size_t* bytes, std::int64_t timeout_ms) {
    return [=](Communicator& communicator) -> Begun {
        if (bytes == nullptr) return tl::unexpected(malformed("`bytes` is NULL"));
        return communicator.all_gather(in, out, {bytes, communicator.world()}, deadline_from(timeout_ms));
    };
}

auto broadcast(void* data, std::size_t bytes, std::uint32_t root, std::int64_t timeout_ms) {
    return [=](Communicator& communicator) {
        return communicator.broadcast(data, bytes, root, deadline_from(timeout_ms));
    };
}

auto barrier(std::int64_t timeout_ms) {
    return [=](Communicator& communicator) { return communicator.barrier(deadline_from(timeout_ms)); };
}

}  // namespace

extern "C" {

int atp_communicator_create(atp_store* store, uint32_t rank, uint32_t world, const struct atp_options* options,
                            atp_communicator** communicator, struct atp_error* error) {
    if (communicator != nullptr) *communicator = nullptr;
    return guarded(error, [&]() -> atp::Result<void> {
        if (store == nullptr || communicator == nullptr) {
            return tl::unexpected(malformed("`store` or `communicator` is NULL"));
        }
        const auto understood = atp::capi::options_from(options);
        if (!understood) return tl::unexpected(understood.error());
        auto handed = std::make_unique<atp_communicator>();
        auto formed = atp::comm::Communicator::form(*store->store, rank, world, *understood);
        if (!formed) return tl::unexpected(formed.error());
        handed->communicator = *std::move(formed);
        *communicator = handed.release();
        return {};
    });
}

void atp_communicator_destroy(atp_communicator* communicator) { delete communicator; }

void atp_communicator_abort(atp_communicator* communicator) {
    if (communicator != nullptr) communicator->communicator->abort();
}

uint32_t atp_communicator_rank(const atp_communicator* communicator) { return communicator->communicator->rank(); }

uint32_t atp_communicator_world(const atp_communicator* communicator) { return communicator->communicator->world(); }

void atp_communicator_counters(const atp_communicator* communicator, struct atp_counters* counters,
                               size_t struct_size) {
    atp::capi::write_counters(communicator->communicator->rank_counters(), counters, struct_size);
}

int atp_all_reduce(atp_communicator* communicator, const void* in, void* out, size_t elements, int element,
                   int reduction, int64_t timeout_ms, struct atp_error* error) {
    const atp_buffer buffer{in, out, elements};
    return wait_for(communicator, error, all_reduce(&buffer, 1, element, reduction, timeout_ms));
}

int atp_all_reduce_group(atp_communicator* communicator, const struct atp_buffer* buffers, size_t count, int element,
                         int reduction, int64_t timeout_ms, struct atp_error* error) {
    return wait_for(communicator, error, all_reduce(buffers, count, element, reduction, timeout_ms));
}

int atp_reduce_scatter(atp_communicator* communicator, const void* in, void* out, const size_t* counts, int element,
                       int reduction, int64_t timeout_ms, struct atp_error* error) {
    return wait_for(communicator, error, reduce_scatter(in, out, counts, element, reduction, timeout_ms));
}

int atp_all_gather(atp_communicator* communicator, const void* in, void* out, const size_t* bytes, int64_t timeout_ms,
                   struct atp_error* error) {
    return wait_for(communicator, error, all_gather(in, out, bytes, timeout_ms));
}

int atp_reduce(atp_communicator* communicator, const void* in, void* out, size_t elements, int element, int reduction,
               uint32_t root, int64_t timeout_ms, struct atp_error* error) {
    return wait_for(communicator, error, reduce({in, out, elements}, element, reduction, root, timeout_ms));
}

int atp_broadcast(atp_communicator* communicator, void* data, size_t bytes, uint32_t root, int64_t timeout_ms,
                  struct atp_error* error) {
    return wait_for(communicator, error, broadcast(data, bytes, root, timeout_ms));
}

int atp_barrier(atp_communicator* communicator, int64_t timeout_ms, struct atp_error* error) {
    return wait_for(communicator, error, barrier(timeout_ms));
}

int atp_push(atp_communicator* communicator, uint64_t key, const void* values, size_t elements, int element,
             int64_t timeout_ms, struct atp_error* error) {
    return guarded(error, [&]() -> atp::Result<void> {
        const auto type = atp::capi::element_from(element);
        if (communicator == nullptr || values == nullptr || !type) {
            return tl::unexpected(malformed("`communicator` or `values` is NULL, or `element` is out of range"));
        }
        return communicator->communicator->push(key, values, elements, *type, deadline_from(timeout_ms));
    });
}

int atp_pull(atp_communicator* communicator, uint64_t key, void* values, size_t elements, int element,
             struct atp_error* error) {
    return guarded(error, [&]() -> atp::Result<void> {
        const auto type = atp::capi::element_from(element);
        if (communicator == nullptr || values == nullptr || !type) {
            return tl::unexpected(malformed("`communicator` or `values` is NULL, or `element` is out of range"));
        }
        return communicator->communicator->pull(key, values, elements, *type);
    });
}

int atp_all_reduce_async(atp_communicator* communicator, const void* in, void* out, size_t elements, int element,
                         int reduction, int64_t timeout_ms, atp_work** work, struct atp_error* error) {
    const atp_buffer buffer{in, out, elements};
    return hand_out(communicator, work, error, all_reduce(&buffer, 1, element, reduction, timeout_ms));
}

int atp_all_reduce_group_async(atp_communicator* communicator, const struct atp_buffer* buffers, size_t count,
                               int element, int reduction, int64_t timeout_ms, atp_work** work,
                               struct atp_error* error) {
    return hand_out(communicator, work, error, all_reduce(buffers, count, element, reduction, timeout_ms));
}

int atp_reduce_scatter_async(atp_communicator* communicator, const void* in, void* out, const size_t* counts,
                             int element, int reduction, int64_t timeout_ms, atp_work** work, struct atp_error* error) {
    return hand_out(communicator, work, error, reduce_scatter(in, out, counts, element, reduction, timeout_ms));
}

int atp_all_gather_async(atp_communicator* communicator, const void* in, void* out, const size_t* bytes,
                         int64_t timeout_ms, atp_work** work, struct atp_error* error) {
    return hand_out(communicator, work, error, all_gather(in, out, bytes, timeout_ms));
}

int atp_reduce_async(atp_communicator* communicator, const void* in, void* out, size_t elements, int element,
                     int reduction, uint32_t root, int64_t timeout_ms, atp_work** work, struct atp_error* error) {
    return hand_out(communicator, work, error, reduce({in, out, elements}, element, reduction, root, timeout_ms));
}

int atp_broadcast_async(atp_communicator* communicator, void* data, size_t bytes, uint32_t root, int64_t timeout_ms,
                        atp_work** work, struct atp_error* error) {
    return hand_out(communicator, work, error, broadcast(data, bytes, root, timeout_ms));
}

int atp_barrier_async(atp_communicator* communicator, int64_t timeout_ms, atp_work** work, struct atp_error* error) {
    return hand_out(communicator, work, error, barrier(timeout_ms));
}

int atp_work_wait(atp_work* work, struct atp_error* error) {
    return guarded(error, [&]() -> atp::Result<void> {
        if (work == nullptr) return tl::unexpected(malformed("`work` is NULL"));
        return work->handle->wait();
    });
}

int atp_work_test(atp_work* work, int* done, struct atp_error* error) {
    return guarded(error, [&]() -> atp::Result<void> {
        if (work == nullptr || done == nullptr) return tl::unexpected(malformed("`work` or `done` is NULL"));
        *done = work->handle->done() ? 1 : 0;
        return *done == 0 ? atp::Result<void>() : work->handle->outcome();
    });
}

void atp_work_free(atp_work* work) { delete work; }

}  // extern "C"
