// SPDX-License-Identifier: Apache-2.0
#include "endpoint/breaks.h"

#ifdef ATP_BREAKABLE
namespace atp::endpoint {

thread_local RoutingBreak active_routing_break = RoutingBreak::none;

}  // namespace atp::endpoint
#endif
