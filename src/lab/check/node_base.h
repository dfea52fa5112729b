// SPDX-License-Identifier: Apache-2.0
// Base of the systems of all protocols: a worker with its tensors, and one step of a node.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "check/configuration.h"
#include "check/model_tensor.h"
#include "check/system.h"
#include "check/truth.h"

namespace atp::check {

// A worker's machine, and the ghost state that each protocol needs.
template <class Machine>
struct WorkerBase {
    std::vector<std::unique_ptr<ModelTensor>> owned;
    std::vector<protocol::Tensor*> tensors;  // pointers to `owned`: archives store a tensor as its index here
    std::unique_ptr<Machine> machine;
    std::uint32_t stored = 0;  // ghost: bit mask of elements whose sum was delivered

    // Adds the tensors of `configuration`. `first_offset`: offset of the first fragment of the first tensor.
    void add_tensors(const Configuration& configuration, const Truth& truth, bool earlier, unsigned rank,
                     std::int32_t first_offset, std::uint16_t purpose = 1) {
        for (const std::uint8_t fragments : configuration.tensors) {
            owned.push_back(std::make_unique<ModelTensor>(truth, earlier, rank, first_offset, fragments, purpose));
            tensors.push_back(owned.back().get());
            first_offset += fragments;
        }
    }

    void submit_tensors() {
        for (protocol::Tensor* tensor : tensors) {
            [[maybe_unused]] const auto number = machine->submit(*tensor, model_now, after_deadline);
            assert(number);
        }
    }

    // Gives the machine an input. `packet` is not used for a timeout.
    void handle(Input input, std::span<std::byte> packet) {
        if (input == Input::timeout || input == Input::deadline) {
            machine->handle_timeout(time_of(input));
        } else {
            machine->handle_packet(packet, input == Input::packet_marked, time_of(input));
        }
    }

    template <class Archive>
    void persist(Archive& archive) {
        machine->persist(archive);
        archive.value(stored);
    }
};

// Loads a state, runs one node, and saves its state.
class NodeBase : public System {
  public:
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) final {
        step.reset();
        const bool crashed = before.empty() || input == Input::crash;
        if (crashed) {
            step.summary.crashed = step.summary.done = true;
            return;
        }
        load(node, before);
        packet_.size = static_cast<std::uint32_t>(packet.size());
        std::ranges::copy(packet, packet_.bytes.begin());
        step_node(node, input, step);
        save(node, time_of(input), step);
    }

  protected:
    virtual void load(unsigned node, std::span<const std::byte> state) = 0;
    // Gives the node `input` with used_packet(), and checks the result.
    virtual void step_node(unsigned node, Input input, Step& step) = 0;
    // Writes the state and the summary of the node.
    virtual void save(unsigned node, Time now, Step& step) = 0;

    [[nodiscard]] std::span<std::byte> used_packet() { return std::span(packet_.bytes).first(packet_.size); }

    Sent packet_;  // the packet of the current step; a copy, because machines may write to it
};

}  // namespace atp::check
