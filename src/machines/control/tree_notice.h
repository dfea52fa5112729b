// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wire/address.h"

namespace atp::control {

// Something that an operator reads in the log of a switch: what happened to a job, to a member of it, or to the parent.
// Unlike TreeEvent, it asks the driver to do nothing.
struct TreeNotice {
    enum class Kind : std::uint8_t {
        job_formed,     // the first JOIN of a channel arrived
        job_ready,      // all members have joined, and the path to the server is ready
        job_left,       // no member is left, and the channel is closed
        job_failed,     // a neighbour failed, or the channel is refused, because of `address` if it has a family
        job_refused,    // a JOIN was refused
        member_joined,  // a child: a worker, or a switch below
        member_left,    // a child sent LEAVE
        member_lost,    // a child sent nothing for the hold time, or its process ended
        parent_ready,   // the parent reports ready for the first time, or again
        parent_lost,    // the parent sent nothing for the hold time, or its process ended
    };
    Kind kind = Kind::job_formed;
    std::uint32_t job = 0;
    std::uint16_t channel = 0;
    std::uint8_t level = 0;
    wire::Address address{};              // of the sender, the child, the culprit or the parent; of no family: none
    std::uint8_t unit = 0;                // member_*: of the child
    std::optional<std::uint16_t> rank{};  // member_*: of the child; nullopt: the child is a switch
    std::uint32_t members = 0;            // job_ready: children of this switch
    std::string reason{};                 // job_failed, job_refused, member_lost, parent_lost
    std::string job_name{};               // job_formed: what people call the job; may be empty
    std::string tenant{};        // job_formed, job_refused: whose job it is; empty: nobody's, as far as is known
    std::uint32_t key = 0;       // with a tenant: id of the sender's key
    std::uint32_t channels = 0;  // job_formed, with a tenant: that it has on this switch
};

}  // namespace atp::control
