// SPDX-License-Identifier: Apache-2.0
// Pairs each option of atp_options with the field of comm::Options that has the same meaning.
#pragma once

#include <atp/atp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "comm/options.h"

namespace atp::capi {

template <class Element>
struct CList {
    const Element* atp_options::*elements;
    std::size_t atp_options::*count;
};

template <class Unit>
struct CTime {
    std::int64_t atp_options::*number;
    Unit unit;
};

// Calls `visit` with the name of each option, its field in C and its field in C++.
template <class Visitor>
void visit_options(const Visitor& visit) {
    using C = atp_options;
    using Own = comm::Options;
    // tools/write_options writes this from src/drivers/comm/option_table.cc.
    visit("switch_address", &C::switch_address, &Own::switch_address);
    visit("listen", &C::listen, &Own::listen);
    visit("rack", &C::rack, &Own::rack);
    visit("link_rate", &C::link_rate, &Own::link_rate);
    visit("uplink", &C::uplink, &Own::uplink);
    visit("uplink_rate", &C::uplink_rate, &Own::uplink_rate);
    visit("channels", &C::channels, &Own::channels);
    visit("lanes", &C::lanes, &Own::lanes);
    visit("window", &C::window, &Own::window);
    visit("scale", &C::scale, &Own::scale);
    visit("scaling", &C::scaling, &Own::scaling);
    visit("lane_type", &C::lane_type, &Own::lane_type);
    visit("audit", &C::audit, &Own::audit);
    visit("multicast", &C::multicast, &Own::multicast);
    visit("server", &C::server, &Own::server);
    visit("dedicated_servers", CList{&C::dedicated_servers, &C::dedicated_server_count}, &Own::dedicated_servers);
    visit("host_level", &C::host_level, &Own::host_level);
    visit("host_name", &C::host_name, &Own::host_name);
    visit("join_timeout", CTime{&C::join_timeout_ms, std::chrono::milliseconds(1)}, &Own::join_timeout);
    visit("timeout", CTime{&C::timeout_ms, std::chrono::milliseconds(1)}, &Own::timeout);
    visit("job_name", &C::job_name, &Own::job_name);
    visit("name", &C::name, &Own::name);
    visit("generation", &C::generation, &Own::generation);
    visit("spin", CTime{&C::spin_us, std::chrono::microseconds(1)}, &Own::spin);
    visit("cores", CList{&C::cores, &C::core_count}, &Own::cores);
    visit("busy_poll_us", &C::busy_poll_us, &Own::busy_poll_us);
    visit("socket_buffer_bytes", &C::socket_buffer_bytes, &Own::socket_buffer_bytes);
    visit("key_file", &C::key_file, &Own::key_file);
    visit("seal", &C::seal, &Own::seal);
}

}  // namespace atp::capi
