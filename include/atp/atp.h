/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ATP for programs in C and for languages that call C: sums of tensors inside the network.
 *
 *     struct atp_options options;
 *     atp_options_init(&options, sizeof options);
 *     options.switch_address = "10.0.0.1:4790";
 *     struct atp_error error;
 *     atp_store *store;
 *     atp_communicator *communicator;
 *     if (atp_store_connect("10.0.0.2:29500", 30000, &store, &error) != 0) ...
 *     if (atp_communicator_create(store, rank, world, &options, &communicator, &error) != 0) ...
 *     if (atp_all_reduce(communicator, gradients, gradients, count, ATP_ELEMENT_FLOAT32, ATP_REDUCTION_SUM,
 *                        ATP_TIMEOUT_OF_OPTIONS, &error) != 0) ...
 *     atp_communicator_destroy(communicator);
 *     atp_store_destroy(store);
 *
 * examples/hello.c is a whole program. tools/write_reference writes docs/reference/c.md from the comments below.
 *
 * Calling order: every rank calls the same operations in the same order.
 * Results: 0 (ATP_REASON_NONE) is success, anything else an enum atp_reason, and then `error` holds the details if it
 * is not NULL. A function that fails to create an object sets the caller's pointer to NULL.
 * Ownership: memory passed in stays the caller's, who must neither change nor free the memory of an operation before
 * the operation is done. Strings, options and lists are read only during the call. Each kind of object has a function
 * that destroys it, and which ignores NULL.
 * Threads: functions of a communicator may be called from any thread, but in an order that is equal on all ranks. A
 * store serves one thread at a time, except for atp_store_in_memory().
 * Time: every wait has a deadline, and an operation ends by its deadline with a result or an error. Times are in
 * milliseconds, unless a name ends in `_us`.
 * Failure: after an operation that had begun failed, no further one of that communicator succeeds. Destroy it, and
 * create another with the next `generation`, with the ranks that still run.
 * Compatibility: structs that may grow begin with their size, so a program and a library of different releases work
 * together. The others keep their size: an error has room for further details, since programs would forget to write its
 * size before each call, and buffers are elements of an array. Numbers of enumerations never change their meaning.
 */
#ifndef ATP_ATP_H
#define ATP_ATP_H

#include <atp/options.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATP_API __attribute__((visibility("default")))
#else
#define ATP_API
#endif

/* ----------------------------------------------------------------------------------------------------------- Release
 */

/* The release of this header. */
#define ATP_VERSION_MAJOR 0
#define ATP_VERSION_MINOR 1
#define ATP_VERSION_PATCH 0
/* The release of this header as one number, 100 for 0.1.0, so that `#if` can compare it. */
#define ATP_VERSION_NUMBER (ATP_VERSION_MAJOR * 10000 + ATP_VERSION_MINOR * 100 + ATP_VERSION_PATCH)
/* The release of the loaded library: "0.1.0". */
ATP_API const char* atp_version(void);

/* ------------------------------------------------------------------------------------------------------------ Errors
 */

/* Why a function failed, for example ATP_REASON_TIMED_OUT. */
enum atp_reason {
    ATP_REASON_NONE = 0,
    ATP_REASON_MALFORMED = 1,         /* a text or value that you passed is invalid */
    ATP_REASON_UNKNOWN_NAME = 2,      /* no such host */
    ATP_REASON_DENIED = 3,            /* refused by permissions of the kernel, or by a firewall */
    ATP_REASON_IN_USE = 4,            /* another socket or program has the address, folder or interface */
    ATP_REASON_UNREACHABLE = 5,       /* no route, no such local address, or no answer from a switch or rank */
    ATP_REASON_REFUSED = 6,           /* no program listens there, or its process ended */
    ATP_REASON_TOO_LARGE = 7,         /* a packet for the path, a value for the store, or a reduction */
    ATP_REASON_UNSUPPORTED = 8,       /* not possible with this type, option, build or kernel */
    ATP_REASON_EXHAUSTED = 9,         /* no descriptors, memory or buffers are left */
    ATP_REASON_TIMED_OUT = 10,        /* a deadline passed */
    ATP_REASON_VERSION_MISMATCH = 11, /* the other end has another version of the protocol */
    ATP_REASON_REJECTED = 12,         /* the other end refused; the text says why */
    ATP_REASON_MISMATCHED = 13,       /* ranks call different operations, or set different options */
    ATP_REASON_CLOSED = 14,           /* ended by its owner, or by an earlier error */
    ATP_REASON_FAILED = 15,           /* anything else: the text says what */
    ATP_REASON_FORGED = 16            /* a switch changed what ranks sent, or a rank with their key did */
};

/* What failed. */
enum atp_operation {
    ATP_OPERATION_OTHER = 0,      /* set-up: sockets, names, threads */
    ATP_OPERATION_RENDEZVOUS = 1, /* ranks find each other through a store */
    ATP_OPERATION_JOIN = 2,       /* a rank joins the job at its switch */
    ATP_OPERATION_ALL_REDUCE = 3,
    ATP_OPERATION_BROADCAST = 4,
    ATP_OPERATION_BARRIER = 5,
    ATP_OPERATION_PUSH = 6,
    ATP_OPERATION_PULL = 7,
    ATP_OPERATION_REDUCE_SCATTER = 8,
    ATP_OPERATION_ALL_GATHER = 9,
    ATP_OPERATION_REDUCE = 10
};

/* The details of a failure. Texts end with a zero byte; one that does not fit its array is cut. */
struct atp_error {
    int32_t operation;  /* enum atp_operation */
    int32_t reason;     /* enum atp_reason */
    double elapsed_ms;  /* since the call; 0 if it never waits */
    char peer[128];     /* the rank, address or name at fault: "rank 3"; empty: none */
    char text[896];     /* what happened, and what to do */
    char reserved[128]; /* for further details; 0 */
};

/* The name of a reason: "timed out"; never NULL. */
ATP_API const char* atp_reason_name(int reason);
/* The name of an operation: "all_reduce"; never NULL. */
ATP_API const char* atp_operation_name(int operation);

/* ------------------------------------------------------------------------------------------------------------- Stores
 */

/*
 * A store, through which ranks exchange addresses and options while they create a communicator. A communicator does not
 * use it after its creation.
 */
typedef struct atp_store atp_store;

/*
 * The functions of a store that the program implements. Keys are texts of up to 256 bytes; values are any bytes, up to
 * 64 KiB. Callbacks run on the thread that creates a communicator, and return 0 or an enum atp_reason.
 */
struct atp_store_callbacks {
    size_t struct_size; /* sizeof(struct atp_store_callbacks) */
    void* context;      /* passed to every callback */
    /* Stores the bytes of the value. Required. */
    int (*set)(void* context, const char* key, const void* value, size_t value_bytes);
    /*
     * Waits up to `timeout_ms` for the key; with 0, it looks once. Returns ATP_REASON_TIMED_OUT if the key is absent.
     * Writes the length to `*value_bytes` and the value to `value`, or returns ATP_REASON_TOO_LARGE if `capacity` is
     * less. Required.
     */
    int (*get)(void* context, const char* key, int64_t timeout_ms, void* value, size_t capacity, size_t* value_bytes);
    /*
     * Adds to the decimal number that the key holds, or to 0 if the key is absent, atomically for all ranks. May be
     * NULL, but then two processes that claim one rank at the same moment are not detected.
     */
    int (*add)(void* context, const char* key, int64_t delta, int64_t* sum);
};

/* Creates a store from functions of the program. */
ATP_API int atp_store_from_callbacks(const struct atp_store_callbacks* callbacks, atp_store** store,
                                     struct atp_error* error);
/*
 * Connects to the store of a server at "host:port". It tries until the timeout, which must be above 0, because ranks
 * start in any order. Create the communicator within 5 minutes, after which the server closes a connection without use.
 */
ATP_API int atp_store_connect(const char* address, int64_t timeout_ms, atp_store** store, struct atp_error* error);
/* Creates a store in memory, for ranks that are threads of this process. All of them may use it at the same time. */
ATP_API int atp_store_in_memory(atp_store** store, struct atp_error* error);
/* Frees the store. Call it when no communicator is being created with the store. */
ATP_API void atp_store_destroy(atp_store* store);

/*
 * A store that other ranks reach over TCP. It runs in a thread of its own, usually in rank 0. Keep it until every rank
 * has created its communicators.
 */
typedef struct atp_store_server atp_store_server;

/* Starts a server at "host:port"; port 0 takes any free port. */
ATP_API int atp_store_server_start(const char* listen, atp_store_server** server, struct atp_error* error);
/* The server's address, "host:port", valid as long as the server. */
ATP_API const char* atp_store_server_address(const atp_store_server* server);
/* Stops the server; clients get ATP_REASON_CLOSED. */
ATP_API void atp_store_server_destroy(atp_store_server* server);

/* ------------------------------------------------------------------------------------------------------ Communicators
 */

/* A rank of a job, with its connections to the others. */
typedef struct atp_communicator atp_communicator;

/* Writes the defaults. `struct_size` is sizeof(struct atp_options). */
ATP_API void atp_options_init(struct atp_options* options, size_t struct_size);

/* Returns when all ranks of the world, 1 to 1,024, have called it, or fails by `join_timeout_ms` of the options. */
ATP_API int atp_communicator_create(atp_store* store, uint32_t rank, uint32_t world, const struct atp_options* options,
                                    atp_communicator** communicator, struct atp_error* error);
/* Ends operations in flight here with ATP_REASON_CLOSED, and leaves the job. Other ranks see the rank leave. */
ATP_API void atp_communicator_destroy(atp_communicator* communicator);
/* Ends operations in flight here and leaves the job, from any thread; the handle stays, and must be destroyed. */
ATP_API void atp_communicator_abort(atp_communicator* communicator);
/* The rank, and the number of ranks, as given at creation. */
ATP_API uint32_t atp_communicator_rank(const atp_communicator* communicator);
ATP_API uint32_t atp_communicator_world(const atp_communicator* communicator);

/* ----------------------------------------------------------------------------------------------------------- Counters
 */

/* tools/write_events writes the counters of a rank from src/events.toml. */
/*
 * What a rank has done since its job formed. Bytes include the headers of Ethernet, IPv4 and UDP, 42 bytes for each
 * datagram, so that you can compare them with the counters of an interface.
 */
struct atp_counters {
    /* Written by the function that writes the counters. */
    size_t struct_size;
    uint64_t operations;         /* operations that this rank has called, without those that Gloo executes */
    uint64_t in_flight_us;       /* microseconds in which at least one operation was in flight */
    uint64_t waiting_us;         /* microseconds for which threads of the program waited for an operation */
    uint64_t copied_bytes;       /* bytes copied to or from the memory that ranks of a host share */
    uint64_t sent_datagrams;     /* datagrams sent */
    uint64_t sent_bytes;         /* bytes sent, headers included */
    uint64_t received_datagrams; /* datagrams received */
    uint64_t received_bytes;     /* bytes received, headers included */
    uint64_t fragments;          /* fragments sent for the first time */
    uint64_t resent;             /* packets sent again */
    uint64_t float_fragments;    /* fragments sent as floats */
};
/* End of the written part. */

/*
 * Writes the counters of this rank. Those of datagrams are at most 0.1 s old. `struct_size` is sizeof(struct
 * atp_counters).
 */
ATP_API void atp_communicator_counters(const atp_communicator* communicator, struct atp_counters* counters,
                                       size_t struct_size);

/* --------------------------------------------------------------------------------------------------------- Operations
 */

/* The type of a tensor's elements. */
enum atp_element {
    ATP_ELEMENT_FLOAT32 = 0,
    ATP_ELEMENT_FLOAT64 = 1,  /* summed with the precision and range of float32 */
    ATP_ELEMENT_FLOAT16 = 2,  /* summed as float32, then rounded */
    ATP_ELEMENT_BFLOAT16 = 3, /* summed as float32, then rounded */
    ATP_ELEMENT_INT32 = 4,    /* exact, modulo 2^32 */
    ATP_ELEMENT_INT64 = 5     /* exact, modulo 2^64 */
};

/*
 * What an operation computes of the ranks' tensors. Only atp_all_reduce() and its variants have the minimum and what
 * follows it, for up to 64 KiB of a rank in one call. They do not round float64.
 */
enum atp_reduction {
    ATP_REDUCTION_SUM = 0,
    ATP_REDUCTION_AVERAGE = 1, /* the sum divided by the number of ranks; not of integers */
    ATP_REDUCTION_MINIMUM = 2, /* NaN if a rank has NaN */
    ATP_REDUCTION_MAXIMUM = 3, /* NaN if a rank has NaN */
    ATP_REDUCTION_PRODUCT = 4, /* in the order of ranks; of integers modulo 2^32 or 2^64 */
    ATP_REDUCTION_AND = 5,     /* of the bits of integers */
    ATP_REDUCTION_OR = 6,      /* of the bits of integers */
    ATP_REDUCTION_XOR = 7      /* of the bits of integers */
};

/*
 * The functions below return when the operation is done, but atp_push() earlier. `timeout_ms` is the timeout of the
 * operation; with this value, `timeout_ms` of the options applies.
 */
#define ATP_TIMEOUT_OF_OPTIONS 0

/* A tensor. `in` and `out` are equal or do not overlap, and both are aligned for their elements. */
struct atp_buffer {
    const void* in;  /* this rank's values */
    void* out;       /* gets the result */
    size_t elements; /* number of values */
};

/* Sums a tensor of each rank. `in` and `out` are as in struct atp_buffer. */
ATP_API int atp_all_reduce(atp_communicator* communicator, const void* in, void* out, size_t elements, int element,
                           int reduction, int64_t timeout_ms, struct atp_error* error);
/* Sums several tensors as one operation, in which small tensors share packets. */
ATP_API int atp_all_reduce_group(atp_communicator* communicator, const struct atp_buffer* buffers, size_t count,
                                 int element, int reduction, int64_t timeout_ms, struct atp_error* error);
/*
 * Sums the blocks of `in`, which follow each other: block r has `counts[r]` elements, and its sum goes to `out` of rank
 * r. Each rank has a count, which is equal on all ranks and may be 0. `out` may be the own block of `in`.
 */
ATP_API int atp_reduce_scatter(atp_communicator* communicator, const void* in, void* out, const size_t* counts,
                               int element, int reduction, int64_t timeout_ms, struct atp_error* error);
/*
 * Copies `in` of each rank to `out` of all ranks, where the blocks follow each other: block r has `bytes[r]` bytes.
 * Each rank has a number, which is equal on all ranks and may be 0. `in` may be the own block of `out`.
 */
ATP_API int atp_all_gather(atp_communicator* communicator, const void* in, void* out, const size_t* bytes,
                           int64_t timeout_ms, struct atp_error* error);
/* Sums a tensor of each rank for rank `root` only; elsewhere `out` stays as it is, and may be NULL. */
ATP_API int atp_reduce(atp_communicator* communicator, const void* in, void* out, size_t elements, int element,
                       int reduction, uint32_t root, int64_t timeout_ms, struct atp_error* error);
/* Copies the bytes of rank `root` to all ranks, in place. */
ATP_API int atp_broadcast(atp_communicator* communicator, void* data, size_t bytes, uint32_t root, int64_t timeout_ms,
                          struct atp_error* error);
/* Returns when every rank has called it. */
ATP_API int atp_barrier(atp_communicator* communicator, int64_t timeout_ms, struct atp_error* error);

/*
 * Adds the values to the sum of a key, and returns when they are copied. A round of a key is one push of it by every
 * rank. If its previous round is in flight, the function waits for it. Every rank pushes all keys in the same order.
 */
ATP_API int atp_push(atp_communicator* communicator, uint64_t key, const void* values, size_t elements, int element,
                     int64_t timeout_ms, struct atp_error* error);
/* Waits for the sum of this rank's last push of the key, and copies it. */
ATP_API int atp_pull(atp_communicator* communicator, uint64_t key, void* values, size_t elements, int element,
                     struct atp_error* error);

/* ------------------------------------------------------------------------------------------- Asynchronous operations
 */

/*
 * An operation in flight. It may outlive its communicator, whose end also ends the operation; the handle stays valid.
 */
typedef struct atp_work atp_work;

/*
 * As the functions without `_async`, but they return before the operation is done. Operations run in the order of the
 * calls.
 */
ATP_API int atp_all_reduce_async(atp_communicator* communicator, const void* in, void* out, size_t elements,
                                 int element, int reduction, int64_t timeout_ms, atp_work** work,
                                 struct atp_error* error);
ATP_API int atp_all_reduce_group_async(atp_communicator* communicator, const struct atp_buffer* buffers, size_t count,
                                       int element, int reduction, int64_t timeout_ms, atp_work** work,
                                       struct atp_error* error);
ATP_API int atp_reduce_scatter_async(atp_communicator* communicator, const void* in, void* out, const size_t* counts,
                                     int element, int reduction, int64_t timeout_ms, atp_work** work,
                                     struct atp_error* error);
ATP_API int atp_all_gather_async(atp_communicator* communicator, const void* in, void* out, const size_t* bytes,
                                 int64_t timeout_ms, atp_work** work, struct atp_error* error);
ATP_API int atp_reduce_async(atp_communicator* communicator, const void* in, void* out, size_t elements, int element,
                             int reduction, uint32_t root, int64_t timeout_ms, atp_work** work,
                             struct atp_error* error);
ATP_API int atp_broadcast_async(atp_communicator* communicator, void* data, size_t bytes, uint32_t root,
                                int64_t timeout_ms, atp_work** work, struct atp_error* error);
ATP_API int atp_barrier_async(atp_communicator* communicator, int64_t timeout_ms, atp_work** work,
                              struct atp_error* error);

/* Waits until the operation is done, at most until its deadline; returns its outcome. */
ATP_API int atp_work_wait(atp_work* work, struct atp_error* error);
/* Returns at once. If the operation is done, it sets `*done` to 1 and returns the outcome; otherwise it sets 0. */
ATP_API int atp_work_test(atp_work* work, int* done, struct atp_error* error);
/* Frees the handle. An operation in flight continues, so its memory must stay valid. */
ATP_API void atp_work_free(atp_work* work);

#ifdef __cplusplus
}
#endif

#endif
