// SPDX-License-Identifier: Apache-2.0
// The operations of a parameter server: Communicator::push() and pull().
#include <fmt/format.h>

#include <cstring>

#include "base/hash.h"
#include "comm/communicator.h"
#include "tensor/tensors.h"

namespace atp::comm {
Result<void> Communicator::push(std::uint64_t key, const void* values, std::size_t elements, numeric::ElementType type,
                                Time deadline) {
    // errors.md, calls, malformed: a push of an empty tensor
    if (elements == 0) return fail(Operation::push, Reason::malformed, {}, "no elements");
    log_type(type);
    std::unique_lock lock(keys_mutex_);
    Key& entry = keys_[key];
    // The previous round must be over, since the values of this round overwrite its values. Other keys do not wait for
    // it.
    while (const Handle before = entry.work) {
        if (entry.type != type || entry.elements != elements) {
            return fail(
                Operation::push, Reason::mismatched, {},
                fmt::format(
                    // errors.md, calls, mismatched
                    "key {} has {} elements of type {}, but the push has {} of type {}: keep both constant per key",
                    key, entry.elements, to_string(entry.type), elements, to_string(type)));
        }
        lock.unlock();
        if (auto done = before->wait(); !done) return done;
        lock.lock();
        if (entry.work == before) break;
    }
    entry.type = type;
    entry.elements = elements;
    entry.values.resize(elements * numeric::bytes_of(type));
    std::memcpy(entry.values.data(), values, entry.values.size());
    auto tensor = tensor::make_sum_tensor(type, entry.values.data(), entry.values.data(), elements,
                                          static_cast<float>(options_.scale), 1.0);
    auto work = submit({.operation = Operation::push,
                        .type = type,
                        .elements = elements,
                        .detail = detail_of(type, Reduction::sum) ^ mix(static_cast<std::uint32_t>(key)),
                        .text = fmt::format("push of {} {} to key {}", elements, to_string(type), key),
                        .alignment = type == numeric::ElementType::int64 ? tensor::lanes_of_int64 : 1},
                       std::move(tensor), deadline);
    if (!work) return tl::unexpected(work.error());
    entry.work = *std::move(work);
    return {};
}

Result<void> Communicator::pull(std::uint64_t key, void* values, std::size_t elements, numeric::ElementType type) {
    Handle work;
    {
        const std::scoped_lock lock(keys_mutex_);
        const auto found = keys_.find(key);
        if (found == keys_.end() || found->second.work == nullptr) {
            return fail(Operation::pull, Reason::malformed, {},
                        // errors.md, calls, malformed
                        fmt::format("this rank has not pushed key {}: push it before the pull", key));
        }
        if (found->second.type != type || found->second.elements != elements) {
            return fail(Operation::pull, Reason::mismatched, {},
                        // errors.md, calls, mismatched
                        fmt::format("key {} has {} elements of type {}: pull the same number and type", key,
                                    found->second.elements, to_string(found->second.type)));
        }
        work = found->second.work;
    }
    if (auto done = work->wait(); !done) return done;
    const std::scoped_lock lock(keys_mutex_);
    const Key& entry = keys_[key];
    if (entry.work != work) {
        return fail(Operation::pull, Reason::mismatched, {},
                    // errors.md, calls, mismatched: another thread of this rank pushed it
                    fmt::format("key {} was pushed again during the pull: finish each pull before the next push", key));
    }
    std::memcpy(values, entry.values.data(), entry.values.size());
    return {};
}

}  // namespace atp::comm
