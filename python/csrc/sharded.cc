// SPDX-License-Identifier: Apache-2.0
// Operations in which each rank sends or gets a part: reduce-scatter, all-gather and reduce.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "process_group.h"

namespace atp::python {
namespace {

using Tensors = std::vector<at::Tensor>;

// Why the network cannot reduce these tensors to parts; empty if it can.
std::optional<std::string> obstacle_of_parts(const Tensors& tensors, const c10d::ReduceOp& operation) {
    if (const auto why = obstacle(tensors, operation)) return why;
    const at::ScalarType type = tensors.front().scalar_type();
    const bool is_average = operation == c10d::ReduceOp::AVG;
    if (is_average && at::isIntegralType(type, true)) return fmt::format("average of {} tensors", c10::toString(type));
    return std::nullopt;
}

// Why the network cannot copy these tensors; empty if it can.
std::optional<std::string> obstacle_of_copies(const Tensors& tensors) {
    if (tensors.empty()) return "no tensors";
    for (const at::Tensor& tensor : tensors) {
        if (!lies_in_memory(tensor)) return "tensor not dense on CPU or CUDA";
        if (tensor.device() != tensors.front().device()) return "tensors on several devices";
        if (tensor.scalar_type() != tensors.front().scalar_type()) return "tensors of several types";
    }
    return std::nullopt;
}

void check(bool fits, const char* text) { TORCH_CHECK_VALUE(fits, "atp: ", text); }

// `outputs`: those of rank 0, then those of rank 1 and so on. The network compares only the bytes of all of them.
void check_outputs(const Tensors& outputs, const Tensors& inputs, int ranks) {
    bool fit = outputs.size() == inputs.size() * static_cast<std::size_t>(ranks);
    for (std::size_t i = 0; fit && i < outputs.size(); ++i) {
        fit = outputs[i].nbytes() == inputs[i % inputs.size()].nbytes();
    }
    check(fit, "an all-gather needs an output for each input of each rank, and as large as that input");
}

// The elements of contiguous tensors one behind the other; of one tensor, its own memory.
at::Tensor chained(const Tensors& tensors) {
    if (tensors.size() == 1) return tensors.front();
    Tensors flat;
    for (const at::Tensor& tensor : tensors) flat.push_back(tensor.view({-1}));
    return at::cat(flat);
}

Tensors hosts_of(const Tensors& tensors) {
    Tensors hosts;
    for (const at::Tensor& tensor : tensors) hosts.push_back(on_host(tensor));
    return hosts;
}

// Outputs one behind the other in memory on the host; a single output in its own memory, if possible.
std::vector<Staged> stage_outputs(const Tensors& outputs) {
    if (outputs.size() == 1) return {stage_output(outputs.front())};
    std::size_t bytes = 0;
    for (const at::Tensor& output : outputs) bytes += output.nbytes();
    const at::Tensor whole = bytes_on_host(bytes, outputs.front().device());
    std::vector<Staged> staged;
    std::int64_t first = 0;
    for (const at::Tensor& output : outputs) {
        const auto length = static_cast<std::int64_t>(output.nbytes());
        staged.push_back(stage_output(output, whole.narrow(0, first, length)));
        first += length;
    }
    return staged;
}

Tensors both(const Tensors& first, const Tensors& second) {
    Tensors all = first;
    all.insert(all.end(), second.begin(), second.end());
    return all;
}

// Block r of each tensor of `ranks` equal blocks.
Tensors blocks_of(const Tensors& tensors, std::int64_t rank, std::int64_t ranks) {
    Tensors blocks;
    for (const at::Tensor& tensor : tensors) blocks.push_back(tensor.view({ranks, -1}).select(0, rank));
    return blocks;
}

}  // namespace

// The outputs are, one behind the other, the blocks of rank 0, those of rank 1 and so on.
ProcessGroupAtp::WorkPointer ProcessGroupAtp::gather_in_network(const Tensors& outputs, const Tensors& inputs,
                                                                const Call& call) {
    const auto communicator = require_communicator();
    const at::NoGradGuard no_grad;
    const at::Tensor input = chained(hosts_of(inputs));
    std::vector<Staged> staged = stage_outputs(outputs);
    staged.front().input = input;
    staged.front().inputs = inputs;
    const std::vector<std::size_t> bytes(static_cast<std::size_t>(getSize()), input.nbytes());
    auto begun =
        communicator->all_gather(input.data_ptr(), staged.front().host.data_ptr(), bytes, deadline_of(call.timeout));
    return hand_out(std::move(begun), std::move(staged), call.type, call.title, call.awaited);
}

// The inputs are, one behind the other, what rank 0 gets, what rank 1 gets and so on.
ProcessGroupAtp::WorkPointer ProcessGroupAtp::scatter_in_network(const Tensors& outputs, const Tensors& inputs,
                                                                 const std::vector<std::size_t>& counts,
                                                                 const c10d::ReduceOp& operation, const Call& call) {
    const auto communicator = require_communicator();
    const at::NoGradGuard no_grad;
    const at::Tensor input = chained(hosts_of(inputs));
    std::vector<Staged> staged = stage_outputs(outputs);
    staged.front().input = input;
    staged.front().inputs = inputs;
    std::size_t own = 0;
    for (const at::Tensor& output : outputs) own += static_cast<std::size_t>(output.numel());
    check(own == counts[static_cast<std::size_t>(getRank())], "the output of a reduce-scatter has another size");
    auto begun = communicator->reduce_scatter(input.data_ptr(), staged.front().host.data_ptr(), counts,
                                              *element_type_of(input.scalar_type()), summing_of(operation),
                                              deadline_of(call.timeout));
    return hand_out(std::move(begun), std::move(staged), call.type, call.title, call.awaited);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::allgather(TensorLists& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
    const bool is_one = outputs.size() == 1 && inputs.size() == 1;
    const auto why = is_one ? obstacle_of_copies(both(outputs.front(), inputs))
                            : std::optional<std::string>("several tensors in one call");
    if (why) {
        return delegate("all_gather", *why)->allgather(outputs, inputs, options);
    }
    check_outputs(outputs.front(), inputs, getSize());
    return gather_in_network(outputs.front(), inputs,
                             {options.timeout, c10d::OpType::ALLGATHER, "atp:all_gather", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                              const c10d::AllgatherOptions& options) {
    if (const auto why = obstacle_of_copies({output, input})) {
        return delegate("all_gather_into_tensor", *why)->_allgather_base(output, input, options);
    }
    check(output.nbytes() == input.nbytes() * static_cast<std::size_t>(getSize()),
          "the output of an all-gather needs the bytes of all ranks");
    return gather_in_network(
        {output}, {input},
        {options.timeout, c10d::OpType::_ALLGATHER_BASE, "atp:all_gather_into_tensor", is_awaited(options)});
}

// Each rank has one list of outputs for each input.
ProcessGroupAtp::WorkPointer ProcessGroupAtp::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                                  const c10d::AllgatherOptions& options) {
    Tensors in_order;
    for (const Tensors& of_rank : outputs) in_order.insert(in_order.end(), of_rank.begin(), of_rank.end());
    if (const auto why = obstacle_of_copies(both(in_order, inputs))) {
        return delegate("all_gather_coalesced", *why)->allgather_coalesced(outputs, inputs, options);
    }
    check_outputs(in_order, inputs, getSize());
    return gather_in_network(
        in_order, inputs,
        {options.timeout, c10d::OpType::ALLGATHER_COALESCED, "atp:all_gather_coalesced", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                              const c10d::AllgatherOptions& options) {
    auto why = obstacle_of_copies(both(outputs, inputs));
    const bool contiguous = std::ranges::all_of(outputs, [](const at::Tensor& each) { return each.is_contiguous(); });
    if (!why && !contiguous) why = "outputs with gaps";
    if (why) {
        return delegate("all_gather_into_tensor_coalesced", *why)
            ->allgather_into_tensor_coalesced(outputs, inputs, options);
    }
    Tensors in_order;
    for (std::int64_t rank = 0; rank < getSize(); ++rank) {
        in_order = both(in_order, blocks_of(outputs, rank, getSize()));
    }
    check_outputs(in_order, inputs, getSize());
    return gather_in_network(
        in_order, inputs,
        {options.timeout, c10d::OpType::COALESCED, "atp:all_gather_into_tensor_coalesced", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                             const c10d::ReduceScatterOptions& options) {
    const bool is_one = outputs.size() == 1 && inputs.size() == 1;
    const auto why = is_one ? obstacle_of_parts(both(inputs.front(), outputs), options.reduceOp)
                            : std::optional<std::string>("several tensors in one call");
    if (why) {
        return delegate("reduce_scatter", *why)->reduce_scatter(outputs, inputs, options);
    }
    check(inputs.front().size() == static_cast<std::size_t>(getSize()),
          "a reduce-scatter needs an input for each rank");
    std::vector<std::size_t> counts;
    for (const at::Tensor& input : inputs.front()) counts.push_back(static_cast<std::size_t>(input.numel()));
    return scatter_in_network(
        outputs, inputs.front(), counts, options.reduceOp,
        {options.timeout, c10d::OpType::REDUCE_SCATTER, "atp:reduce_scatter", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                                   const c10d::ReduceScatterOptions& options) {
    if (const auto why = obstacle_of_parts({input, output}, options.reduceOp)) {
        return delegate("reduce_scatter_tensor", *why)->_reduce_scatter_base(output, input, options);
    }
    check(input.numel() == output.numel() * getSize(), "the input of a reduce-scatter needs a block for each rank");
    const std::vector<std::size_t> counts(static_cast<std::size_t>(getSize()),
                                          static_cast<std::size_t>(output.numel()));
    return scatter_in_network(
        {output}, {input}, counts, options.reduceOp,
        {options.timeout, c10d::OpType::_REDUCE_SCATTER_BASE, "atp:reduce_scatter_tensor", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
    if (const auto why = obstacle_of_parts(both(inputs, outputs), options.reduceOp)) {
        return delegate("reduce_scatter_tensor_coalesced", *why)
            ->reduce_scatter_tensor_coalesced(outputs, inputs, options);
    }
    check(inputs.size() == outputs.size(), "a reduce-scatter needs an output for each input");
    std::size_t each = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        check(inputs[i].numel() == outputs[i].numel() * getSize(),
              "the input of a reduce-scatter needs a block for each rank");
        each += static_cast<std::size_t>(outputs[i].numel());
    }
    const Tensors hosts = hosts_of(inputs);
    Tensors in_order;
    for (std::int64_t rank = 0; rank < getSize(); ++rank) {
        in_order = both(in_order, blocks_of(hosts, rank, getSize()));
    }
    const std::vector<std::size_t> counts(static_cast<std::size_t>(getSize()), each);
    return scatter_in_network(
        outputs, in_order, counts, options.reduceOp,
        {options.timeout, c10d::OpType::COALESCED, "atp:reduce_scatter_tensor_coalesced", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
    const auto why = tensors.size() == 1 ? obstacle_of_parts(tensors, options.reduceOp)
                                         : std::optional<std::string>("several tensors in one call");
    if (why) return delegate("reduce", *why)->reduce(tensors, options);
    const auto communicator = require_communicator();
    const at::NoGradGuard no_grad;
    const at::Tensor& tensor = tensors.front();
    const bool is_root = options.rootRank == getRank();
    Staged staged = is_root ? stage_output(tensor) : Staged{.tensor = tensor, .memory = tensor, .host = tensor};
    staged.input = on_host(tensor);
    const auto elements = static_cast<std::size_t>(tensor.numel());
    auto begun = communicator->reduce({staged.input.data_ptr(), is_root ? staged.host.data_ptr() : nullptr, elements},
                                      *element_type_of(tensor.scalar_type()), summing_of(options.reduceOp),
                                      static_cast<std::uint32_t>(options.rootRank), deadline_of(options.timeout));
    return hand_out(std::move(begun), {std::move(staged)}, c10d::OpType::REDUCE, "atp:reduce", is_awaited(options));
}

}  // namespace atp::python
