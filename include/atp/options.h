/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a communicator. Include atp/atp.h, which includes this file. */
#ifndef ATP_OPTIONS_H
#define ATP_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------------ Options
 */

/* Layout: where the parameter servers are, and which switches add. */
enum atp_server {
    ATP_SERVER_ON_SWITCH = 0, /* in the last switch: no further host */
    ATP_SERVER_COLOCATED = 1, /* in the ranks: channel c has its server in rank (c modulo the number of ranks) */
    ATP_SERVER_DEDICATED = 2, /* on hosts of their own: `dedicated_servers` */
    ATP_SERVER_AUTOMATIC = 3, /* the layout whose busiest link has the least to carry */
    ATP_SERVER_HOSTS = 4,     /* on every host; no switch adds */
    ATP_SERVER_LEAVES = 5,    /* on every host, behind the switches of racks */
    ATP_SERVER_RACKS = 6      /* on every host, behind racks; hosts of a rack without a switch take turns as one */
};

/* How floats become integers. */
enum atp_scaling {
    ATP_SCALING_FIXED = 0,  /* at `scale` of the options */
    ATP_SCALING_DYNAMIC = 1 /* at a scale that follows the magnitude of earlier sums */
};

/* The integers of a packet. */
enum atp_lane_type {
    ATP_LANE_INT32 = 0,     /* four bytes for each value */
    ATP_LANE_INT16 = 1,     /* half the bytes */
    ATP_LANE_AUTOMATIC = 2, /* int16 for bfloat16 and float16 with a dynamic scale, otherwise int32 */
    ATP_LANE_INT8 = 3       /* a quarter of the bytes */
};

/* What ranks prove with their key. */
enum atp_seal {
    ATP_SEAL_NONE = 0,
    ATP_SEAL_OPERATION = 1 /* of each operation, that no switch changed its sums */
};

/* How important a line of the log is. */
enum atp_severity {
    ATP_SEVERITY_TRACE = 0,
    ATP_SEVERITY_DEBUG = 1,
    ATP_SEVERITY_INFO = 2,
    ATP_SEVERITY_WARN = 3,
    ATP_SEVERITY_ERROR = 4
};

/*
 * Gets a line of the log, of ATP_SEVERITY_DEBUG and above unless the variable ATP_LOG names another level. Several
 * threads may call it at once, until the communicator is destroyed and its last atp_work is freed. It must return soon,
 * and must not call functions of a communicator.
 */
typedef void atp_log_receiver(void* context, int severity, const char* line);

/*
 * Settings of a communicator. Call atp_options_init() first. If ranks differ in a field that must be equal, creation
 * fails with ATP_REASON_MISMATCHED and names a rank. tools/write_options writes the fields from
 * src/drivers/comm/option_table.cc. Those marked "Own" may differ between ranks; brackets hold the default.
 */
struct atp_options {
    /* Written by atp_options_init(). */
    size_t struct_size;
    /*
     * Address of the switch of this rank (host:port or [host]:port). Own. [none: hosts serve the sums, each at its
     * listen address]
     */
    const char* switch_address;
    /* Independent streams of a rank, each with an I/O thread (1 to 64). [1] */
    uint32_t channels;
    /* Lanes of a packet (2 to 16,362). [0: as many as all paths carry] */
    uint32_t lanes;
    /*
     * Maximum number of packets of a channel in flight (a power of two, 1 to 65,536). [0: the largest that fits in
     * 256 KiB, from 8 to 256]
     */
    uint32_t window;
    /* Add an audit lane of four bytes to each packet, which the server and the workers check. [0] */
    int32_t audit;
    /*
     * Factor between a float32 value and its integer if scaling is fixed: x is sent as round(x * scale) (above 0).
     * [1e8]
     */
    double scale;
    /* Must be 1, as atp_options_init() writes it. */
    int32_t reserved_1;
    /* Layout: where the servers are, and which switches add (enum atp_server). [ATP_SERVER_AUTOMATIC] */
    int32_t server;
    /* Addresses of dedicated parameter servers; the channels take them in turn (host:port). [none] */
    const char* const* dedicated_servers;
    size_t dedicated_server_count;
    /* Longest wait for the other ranks and the tree of switches (milliseconds, above 0). Own. [30,000] */
    int64_t join_timeout_ms;
    /* Timeout of an operation that is called without a timeout (milliseconds, above 0). Own. [300,000] */
    int64_t timeout_ms;
    /* Name of the communicator; it separates communicators that share a store. [atp] */
    const char* name;
    /* Number of the attempt to form this communicator; increase it after a failure. [0] */
    uint32_t generation;
    /* Time in microseconds for which the kernel polls the network device (SO_BUSY_POLL). Own. [0] */
    uint32_t busy_poll_us;
    /* Time for which an I/O thread polls before it sleeps (microseconds, 0 or longer). Own. [0] */
    int64_t spin_us;
    /* Processor cores of the I/O threads, in turn (numbers of processor cores). Own. [chosen by the kernel] */
    const uint32_t* cores;
    size_t core_count;
    /* Bytes of a socket's buffer, per direction. Own. [8388608] */
    uint32_t socket_buffer_bytes;
    /* Must be 0. */
    uint32_t reserved;
    /*
     * Scale of float values: fixed for the job, or following the magnitude of earlier sums (enum atp_scaling).
     * [ATP_SCALING_DYNAMIC]
     */
    int32_t scaling;
    /*
     * Type of a scaled value in a packet; auto: int16 for bfloat16 and float16 if the scale is dynamic (enum
     * atp_lane_type). [ATP_LANE_AUTOMATIC]
     */
    int32_t lane_type;
    /* Name of the rack of this rank; needed if the racks have switches that workers do not address. Own. [none] */
    const char* rack;
    /*
     * Send each result once, to a multicast group, if every rank receives the group (off, on, or IPv4 groups such as
     * 239.192.0.0/16). [off]
     */
    const char* multicast;
    /* Ranks that can share memory sum there. [1] */
    int32_t host_level;
    /* Name of the host of this rank; ranks with different names never share memory (any word). Own. [none] */
    const char* host_name;
    /*
     * Address at which this rank may serve a part of the sums to the other hosts (host:port, host:0 for any port, or
     * host:first-last). Own. [none]
     */
    const char* listen;
    /*
     * Rate of the link of this host in each direction, to choose a layout (such as 25gbit). Own. [0: the slowest
     * that a rank names]
     */
    double link_rate;
    /*
     * Name of the link above the rack of this host, which ranks with the same name share. Own. [the name in rack,
     * otherwise the switch of this rank]
     */
    const char* uplink;
    /*
     * Rate of that link in each direction, to choose a layout (such as 25gbit). Own. [0: the rate of the slowest
     * host]
     */
    double uplink_rate;
    /* Gets the lines of this rank's log. Own. [NULL: standard error gets warnings and errors] */
    atp_log_receiver* log_receiver;
    /* The first argument of log_receiver. Own. [NULL] */
    void* log_context;
    /*
     * Key of the team, which seals what ranks tell each other and proves to switches who joins (a path). Own. [the
     * file in ATP_KEY_FILE, otherwise none]
     */
    const char* key_file;
    /*
     * What ranks prove with their key: of each operation, that no switch changed its sums (enum atp_seal).
     * [ATP_SEAL_NONE]
     */
    int32_t seal;
    /*
     * Name of the job, which switches show beside its number (any name, of which the first 63 bytes count). Own.
     * [the name in ATP_JOB_NAME, otherwise torchrun's or Slurm's id of the job]
     */
    const char* job_name;
};

#ifdef __cplusplus
}
#endif

#endif
