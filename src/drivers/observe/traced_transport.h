// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "net/transport.h"
#include "observe/trace_file.h"

namespace atp::observe {

// A transport whose packets are also written to a trace: "sent" when they are queued, "received" when receive() returns
// them. `events` becomes the sink for further events of the thread that drives the transport. It lives as long as the
// transport, and writes the time of each call.
[[nodiscard]] std::unique_ptr<net::Transport> trace_transport(std::unique_ptr<net::Transport> transport,
                                                              std::shared_ptr<TraceFile> file,
                                                              wire::TraceSink** events = nullptr);

}  // namespace atp::observe
