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
// `key_file`: of the ranks' tenant, which it then asks all members for; empty: the file in ATP_KEY_FILE, otherwise
// none. On success, `text` has its address.
ATP_API int32_t atp_bridge_switch_start(const char* listen, const char* key_file, atp_bridge_switch** node,
                                        struct atp_bridge_text* text);
ATP_API void atp_bridge_switch_stop(atp_bridge_switch* node);

// Writes the local address, without a port, from which this host reaches `address`.
ATP_API int32_t atp_bridge_address_towards(const char* address, struct atp_bridge_text* text);

// Waits for a line of a log, and returns its level in Python's module logging. 0: atp_bridge_close_log_lines() was
// called, and no line is left.
ATP_API int32_t atp_bridge_take_log_line(struct atp_bridge_text* line);
ATP_API void atp_bridge_close_log_lines(void);

// The metrics of all communicators of this process, as OpenMetrics or as the text of Prometheus. Returns the length of
// the text, of which `buffer` gets as much as fits; 0: no memory.
ATP_API size_t atp_bridge_metrics(int32_t open_metrics, char* buffer, size_t size);

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

// An operation as python/atp/_fallback.py begins it, for a PyTorch without a library of its own.
struct atp_bridge_call {
    int32_t operation;  // enum atp_operation, without push and pull
    int32_t type;       // numeric::FoldType, which has the values of numeric::ElementType too
    int32_t reduction;  // comm::Reduction, or numeric::FoldOperation
    uint32_t root;      // of a broadcast or reduce
    double factor;      // of Reduction::scaled
    double timeout_s;   // of the operation
    int32_t awaited;    // the caller waits for it at once
    size_t count;       // of the buffers
};

// Begins an operation. An average of integers is a sum that the caller divides. All but an all_reduce have one buffer,
// and that of a broadcast has bytes. `shares`: for each rank, bytes of an all_gather or elements of a reduce_scatter.
// The buffers' memory must live until the operation is done. Free the work with atp_work_free().
ATP_API int32_t atp_bridge_begin(const atp_communicator* communicator, const struct atp_bridge_call* call,
                                 const struct atp_buffer* buffers, const size_t* shares, atp_work** work,
                                 struct atp_bridge_text* text);
// Waits up to `seconds`. Returns 0 or 1 if the operation is done, 2 if it still runs.
ATP_API int32_t atp_bridge_wait(const atp_work* work, double seconds, struct atp_bridge_text* text);
// Writes what a caller raises that no longer waits for the operation, after `timeout_ms`.
ATP_API void atp_bridge_give_up(const atp_work* work, int64_t timeout_ms, struct atp_bridge_text* text);
ATP_API int32_t atp_bridge_push(const atp_communicator* communicator, uint64_t key, const void* values, size_t elements,
                                int32_t type, double timeout_s, struct atp_bridge_text* text);
ATP_API int32_t atp_bridge_pull(const atp_communicator* communicator, uint64_t key, void* values, size_t elements,
                                int32_t type, struct atp_bridge_text* text);
// Largest sum of a rank's bytes in an operation that the ranks fold.
ATP_API uint64_t atp_bridge_longest_fold(void);

// Elements with one scale in narrow lanes.
ATP_API uint64_t atp_bridge_elements_of_cell(void);

}  // extern "C"
