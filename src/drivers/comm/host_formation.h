// SPDX-License-Identifier: Apache-2.0
// How ranks find out that they can share memory: by trying, because neither host names nor counts of local ranks prove
// it (H41, docs/protocol.md#h41).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "comm/options.h"
#include "shm/host_link.h"
#include "store/rendezvous.h"

namespace atp::comm {

struct SharedHost {
    std::unique_ptr<shm::HostMemory> memory;
    std::optional<shm::HostLink> link;  // nullopt: the only rank
};
// Why some ranks do not share memory. All ranks have the same text.
struct Apart {
    std::string why;
};

// All ranks return the same alternative. An error ends the formation.
[[nodiscard]] Result<std::variant<SharedHost, Apart>> share_memory(store::Rendezvous& rendezvous,
                                                                   const Options& options, Time deadline);

}  // namespace atp::comm
