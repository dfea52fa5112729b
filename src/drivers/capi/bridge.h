// SPDX-License-Identifier: Apache-2.0
// What the Python package calls beside the C interface, through ctypes (python/atp/_library.py). The package and this
// library come from one build, so these functions may change with any build, and no header of them is installed.
//
// Results: 0 is success. Otherwise the text of the exception is in `text`, and atp_bridge_failure_of() knows its parts.
// Threads: any. ctypes releases Python's lock for the time of a call.
#pragma once

#include <atp/atp.h>

extern "C" {

struct atp_bridge_text {
    char text[8192];  // a list of 1,024 ranks fits
};

// What a rank uses of the network.
struct atp_bridge_network {
    char switch_address[256];  // empty: none
    char listen[256];          // empty: nowhere
    int32_t hosts_switch;      // this process runs that switch
    char refusal[2048];        // why there is none, if the function fails
};

// Called once if the ranks need the network, with the switch that rank 0 names. Returns 0, or 1 for a refusal.
using atp_bridge_find_network = int32_t(const char* offered, struct atp_bridge_network* network);

// Forms a communicator. `options`: names of docs/reference/options.md and texts in turn, `count` of both together; an
// empty text leaves the default. Lines of the log go to atp_bridge_take_log_line().
ATP_API int32_t atp_bridge_form(atp_store* store, uint32_t rank, uint32_t world, const char* const* options,
                                size_t count, int32_t starts_switch, atp_bridge_find_network* find_network,
                                double timeout_s, atp_communicator** communicator, struct atp_bridge_text* text);

// A switch in this process.
struct atp_bridge_switch;
// On success, `text` has its address.
ATP_API int32_t atp_bridge_switch_start(const char* listen, atp_bridge_switch** node, struct atp_bridge_text* text);
ATP_API void atp_bridge_switch_stop(atp_bridge_switch* node);

// Writes the local address, without a port, from which this host reaches `address`.
ATP_API int32_t atp_bridge_address_towards(const char* address, struct atp_bridge_text* text);

// Waits for a line of a log, and returns its level in Python's module logging. 0: atp_bridge_close_log_lines() was
// called, and no line is left.
ATP_API int32_t atp_bridge_take_log_line(struct atp_bridge_text* line);
ATP_API void atp_bridge_close_log_lines(void);

// The parts of an error.
struct atp_bridge_failure {
    char reason[32];
    char operation[32];
    char address[256];  // empty: no switch, server or name is at fault, or none is known
    uint32_t rank_count;
    uint32_t ranks[1024];
};

// Returns 1 if `text` contains the text of one of the last errors, whose parts it then writes, otherwise 0.
ATP_API int32_t atp_bridge_failure_of(const char* text, struct atp_bridge_failure* failure);

// Elements with one scale in narrow lanes.
ATP_API uint64_t atp_bridge_elements_of_cell(void);

}  // extern "C"
