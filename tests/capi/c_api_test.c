/* SPDX-License-Identifier: Apache-2.0 */
/* The public header in plain C99, and two ranks as threads that use every function of it. */
#include <atp/atp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_api_switch.h"

#define RANKS 2u
#define ELEMENTS 100000u
#define PATIENCE_MS 20000

static const char* switch_address;

/* Ends the whole program if the condition is false, so that the other rank does not wait for this rank. */
#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static void succeed(int result, const struct atp_error* error, int line) {
    if (result == ATP_REASON_NONE) return;
    fprintf(stderr, "%s:%d: %s %s: %s after %.1f ms: %s\n", __FILE__, line, atp_operation_name(error->operation),
            error->peer, atp_reason_name(error->reason), error->elapsed_ms, error->text);
    exit(1);
}
#define SUCCEED(call) succeed(call, &error, __LINE__)

/* Counts the lines "job ready". `context` is the rank's own counter. */
static void count_ready_lines(void* context, int severity, const char* line) {
    if (strncmp(line, "job ready ", 10) != 0) return;
    REQUIRE(severity == ATP_SEVERITY_INFO);
    ++*(int*)context;
}

static struct atp_options options_of_test(void) {
    struct atp_options options;
    atp_options_init(&options, sizeof options);
    options.host_level = 0; /* these tests are about the network */
    options.switch_address = switch_address;
    options.channels = 2;
    options.audit = 1;
    options.join_timeout_ms = PATIENCE_MS;
    options.timeout_ms = PATIENCE_MS;
    options.socket_buffer_bytes = 1u << 20;
    return options;
}

/* Rank r contributes r + 1 + i, halves of it, and so on: every sum is exact. */
static void check_sums(atp_communicator* communicator) {
    const uint32_t rank = atp_communicator_rank(communicator);
    struct atp_error error;
    float* in = malloc(ELEMENTS * sizeof *in);
    float* out = malloc(ELEMENTS * sizeof *out);
    int64_t integers[3];
    struct atp_buffer group[2];
    size_t i;
    REQUIRE(in != NULL && out != NULL);
    for (i = 0; i < ELEMENTS; ++i) in[i] = (float)(rank + 1) * 0.25F + (float)(i % 7);
    SUCCEED(atp_all_reduce(communicator, in, out, ELEMENTS, ATP_ELEMENT_FLOAT32, ATP_REDUCTION_SUM,
                           ATP_TIMEOUT_OF_OPTIONS, &error));
    for (i = 0; i < ELEMENTS; ++i) REQUIRE(out[i] == 0.75F + 2 * (float)(i % 7));
    SUCCEED(
        atp_all_reduce(communicator, in, in, ELEMENTS, ATP_ELEMENT_FLOAT32, ATP_REDUCTION_AVERAGE, PATIENCE_MS, NULL));
    for (i = 0; i < ELEMENTS; ++i) REQUIRE(in[i] == out[i] / 2);

    integers[0] = rank == 0 ? INT64_MAX : 1;
    integers[1] = -5 - (int64_t)rank;
    integers[2] = 7;
    group[0].in = group[0].out = &integers[0];
    group[0].elements = 1;
    group[1].in = group[1].out = &integers[1];
    group[1].elements = 2;
    SUCCEED(atp_all_reduce_group(communicator, group, 2, ATP_ELEMENT_INT64, ATP_REDUCTION_SUM, 0, &error));
    REQUIRE(integers[0] == INT64_MIN && integers[1] == -11 && integers[2] == 14);
    free(in);
    free(out);
}

static void check_folds(atp_communicator* communicator, uint32_t rank) {
    const double own[2] = {1.0 + (double)rank * 1e-12, -(double)rank};
    const int32_t bits[2] = {rank == 0 ? 6 : 3, -1};
    const int32_t factors[2] = {rank == 0 ? INT32_MAX : 2, 3};
    double of_doubles[2];
    int32_t of_integers[2];
    struct atp_error error;
    SUCCEED(atp_all_reduce(communicator, own, of_doubles, 2, ATP_ELEMENT_FLOAT64, ATP_REDUCTION_MAXIMUM, 0, &error));
    REQUIRE(of_doubles[0] == 1.0 + 1e-12 && of_doubles[1] == 0);
    SUCCEED(atp_all_reduce(communicator, own, of_doubles, 2, ATP_ELEMENT_FLOAT64, ATP_REDUCTION_MINIMUM, 0, &error));
    REQUIRE(of_doubles[0] == 1.0 && of_doubles[1] == -1);
    SUCCEED(atp_all_reduce(communicator, factors, of_integers, 2, ATP_ELEMENT_INT32, ATP_REDUCTION_PRODUCT, 0, &error));
    REQUIRE(of_integers[0] == -2 && of_integers[1] == 9);
    SUCCEED(atp_all_reduce(communicator, bits, of_integers, 2, ATP_ELEMENT_INT32, ATP_REDUCTION_AND, 0, &error));
    REQUIRE(of_integers[0] == 2 && of_integers[1] == -1);
    SUCCEED(atp_all_reduce(communicator, bits, of_integers, 2, ATP_ELEMENT_INT32, ATP_REDUCTION_OR, 0, &error));
    REQUIRE(of_integers[0] == 7 && of_integers[1] == -1);
    SUCCEED(atp_all_reduce(communicator, bits, of_integers, 2, ATP_ELEMENT_INT32, ATP_REDUCTION_XOR, 0, &error));
    REQUIRE(of_integers[0] == 5 && of_integers[1] == 0);
}

static void check_parts(atp_communicator* communicator, uint32_t rank) {
    const size_t counts[RANKS] = {2, 1};
    const size_t bytes[RANKS] = {4, 3};
    const int32_t in[3] = {1 + (int32_t)rank, 10, 100};
    int32_t out[3] = {-1, -1, -1};
    char whole[8] = "";
    struct atp_error error;
    atp_work* work;
    SUCCEED(atp_reduce_scatter(communicator, in, out, counts, ATP_ELEMENT_INT32, ATP_REDUCTION_SUM, 0, &error));
    REQUIRE(out[0] == (rank == 0 ? 3 : 200) && out[1] == (rank == 0 ? 20 : -1));
    SUCCEED(atp_reduce_scatter_async(communicator, in, out, counts, ATP_ELEMENT_INT32, ATP_REDUCTION_SUM, 0, &work,
                                     &error));
    SUCCEED(atp_work_wait(work, &error));
    atp_work_free(work);
    SUCCEED(atp_all_gather(communicator, rank == 0 ? "four" : "two", whole, bytes, 0, &error));
    REQUIRE(strcmp(whole, "fourtwo") == 0);
    SUCCEED(atp_all_gather_async(communicator, rank == 0 ? "FOUR" : "TWO", whole, bytes, 0, &work, &error));
    SUCCEED(atp_work_wait(work, &error));
    atp_work_free(work);
    REQUIRE(strcmp(whole, "FOURTWO") == 0);
    SUCCEED(atp_reduce(communicator, in, out, 3, ATP_ELEMENT_INT32, ATP_REDUCTION_SUM, 1, 0, &error));
    REQUIRE(rank == 0 || (out[0] == 3 && out[2] == 200));
    SUCCEED(atp_reduce_async(communicator, in, rank == 1 ? out : NULL, 3, ATP_ELEMENT_INT32, ATP_REDUCTION_SUM, 1, 0,
                             &work, &error));
    SUCCEED(atp_work_wait(work, &error));
    atp_work_free(work);
    REQUIRE(atp_all_gather(communicator, whole, whole, NULL, 0, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strcmp(atp_operation_name(ATP_OPERATION_REDUCE_SCATTER), "reduce_scatter") == 0);
}

static void check_others(atp_communicator* communicator) {
    const uint32_t rank = atp_communicator_rank(communicator);
    struct atp_error error;
    char text[13] = "";
    double values[3];
    double sums[3];
    if (rank == 1) strcpy(text, "twelve bytes");
    SUCCEED(atp_broadcast(communicator, text, sizeof text, 1, 0, &error));
    check_parts(communicator, rank);
    check_folds(communicator, rank);
    REQUIRE(strcmp(text, "twelve bytes") == 0);
    SUCCEED(atp_barrier(communicator, 0, &error));
    values[0] = values[1] = values[2] = 1.5 + rank;
    SUCCEED(atp_push(communicator, 42, values, 3, ATP_ELEMENT_FLOAT64, 0, &error));
    SUCCEED(atp_pull(communicator, 42, sums, 3, ATP_ELEMENT_FLOAT64, &error));
    REQUIRE(sums[0] == 4 && sums[1] == 4 && sums[2] == 4);
}

static void check_handles(atp_communicator* communicator) {
    struct atp_error error;
    int32_t numbers[3][5];
    struct atp_buffer buffer;
    char byte = (char)(atp_communicator_rank(communicator) == 0 ? 'a' : 'b');
    atp_work* works[5];
    int done = 0;
    size_t i;
    for (i = 0; i < 15; ++i) numbers[i / 5][i % 5] = (int32_t)i;
    for (i = 0; i < 2; ++i) {
        SUCCEED(atp_all_reduce_async(communicator, numbers[i], numbers[i], 5, ATP_ELEMENT_INT32, ATP_REDUCTION_SUM, 0,
                                     &works[i], &error));
    }
    buffer.in = buffer.out = numbers[2];
    buffer.elements = 5;
    SUCCEED(atp_all_reduce_group_async(communicator, &buffer, 1, ATP_ELEMENT_INT32, ATP_REDUCTION_SUM, 0, &works[2],
                                       &error));
    SUCCEED(atp_broadcast_async(communicator, &byte, 1, 0, 0, &works[3], &error));
    SUCCEED(atp_barrier_async(communicator, 0, &works[4], &error));
    while (!done) SUCCEED(atp_work_test(works[4], &done, &error)); /* the deadline of the operation ends the loop */
    for (i = 0; i < 4; ++i) SUCCEED(atp_work_wait(works[i], &error));
    for (i = 0; i < 15; ++i) REQUIRE(numbers[i / 5][i % 5] == (int32_t)(2 * i));
    REQUIRE(byte == 'a');
    for (i = 0; i < 5; ++i) atp_work_free(works[i]);
}

static void check_refusals(atp_communicator* communicator) {
    struct atp_error error;
    int32_t number = 1;
    atp_work* work = (atp_work*)&number;
    REQUIRE(atp_all_reduce(communicator, &number, &number, 1, ATP_ELEMENT_INT32, ATP_REDUCTION_AVERAGE, 0, &error) ==
            ATP_REASON_UNSUPPORTED);
    REQUIRE(error.reason == ATP_REASON_UNSUPPORTED && error.operation == ATP_OPERATION_ALL_REDUCE);
    REQUIRE(strstr(error.text, "int32") != NULL);
    REQUIRE(atp_all_reduce(communicator, &number, &number, 1, 99, ATP_REDUCTION_SUM, 0, NULL) == ATP_REASON_MALFORMED);
    REQUIRE(atp_all_reduce(communicator, &number, &number, 16385, ATP_ELEMENT_INT32, ATP_REDUCTION_MAXIMUM, 0,
                           &error) == ATP_REASON_TOO_LARGE);
    REQUIRE(strcmp(error.text, "the maximum of 16385 int32 exceeds 65536 bytes: split it into several operations") ==
            0);
    REQUIRE(atp_all_reduce(communicator, &number, &number, 1, ATP_ELEMENT_FLOAT32, ATP_REDUCTION_XOR, 0, NULL) ==
            ATP_REASON_UNSUPPORTED);
    REQUIRE(atp_reduce(communicator, &number, &number, 1, ATP_ELEMENT_INT32, ATP_REDUCTION_MAXIMUM, 0, 0, &error) ==
            ATP_REASON_UNSUPPORTED);
    REQUIRE(atp_broadcast_async(communicator, &number, 4, RANKS, 0, &work, &error) == ATP_REASON_MALFORMED);
    REQUIRE(work == NULL);
    error.reserved[0] = error.reserved[sizeof error.reserved - 1] = 'x';
    REQUIRE(atp_barrier(NULL, 0, &error) == ATP_REASON_MALFORMED);
    REQUIRE(error.reserved[0] == 0 && error.reserved[sizeof error.reserved - 1] == 0);
}

/* After the operations above. */
static void check_counters(atp_communicator* communicator) {
    const size_t known = offsetof(struct atp_counters, in_flight_us);
    struct newer_counters {
        struct atp_counters known;
        uint64_t unknown;
    } newer;
    struct atp_counters before;
    struct atp_counters after;
    struct atp_error error;
    atp_communicator_counters(communicator, &before, sizeof before);
    REQUIRE(before.struct_size == sizeof before && before.operations > 0);
    SUCCEED(atp_barrier(communicator, 0, &error));
    /* What the thread of the channel counted follows some time after an operation. */
    do {
        atp_communicator_counters(communicator, &after, sizeof after);
    } while (after.sent_bytes <= ELEMENTS * sizeof(float) || after.received_bytes <= ELEMENTS * sizeof(float) ||
             after.sent_datagrams == before.sent_datagrams || after.received_datagrams == before.received_datagrams);
    REQUIRE(after.operations == before.operations + 1);
    REQUIRE(after.in_flight_us >= before.in_flight_us && after.waiting_us >= before.waiting_us && after.waiting_us > 0);
    REQUIRE(after.sent_bytes >= 42 * after.sent_datagrams && after.fragments > 0);
    REQUIRE(after.copied_bytes == 0); /* no memory is shared */

    /* A program with an older or a newer header. */
    memset(&newer, 0x5A, sizeof newer);
    atp_communicator_counters(communicator, &newer.known, known);
    REQUIRE(newer.known.struct_size == known && newer.known.operations == after.operations);
    REQUIRE(newer.known.in_flight_us == 0x5A5A5A5A5A5A5A5A);
    atp_communicator_counters(communicator, &newer.known, sizeof newer);
    REQUIRE(newer.known.operations == after.operations && newer.unknown == 0);
}

/* The other rank leaves while this one waits for it. */
static void check_departure(atp_communicator* communicator) {
    struct atp_error error;
    atp_work* work;
    if (atp_communicator_rank(communicator) == 1) {
        SUCCEED(atp_barrier_async(communicator, 0, &work, &error));
        SUCCEED(atp_work_wait(work, &error));
        atp_work_free(work);
        atp_communicator_abort(communicator);
        return;
    }
    SUCCEED(atp_barrier(communicator, 0, &error));
    SUCCEED(atp_barrier_async(communicator, 0, &work, &error));
    REQUIRE(atp_work_wait(work, &error) != ATP_REASON_NONE);
    REQUIRE(error.operation == ATP_OPERATION_BARRIER);
    REQUIRE(strcmp(error.peer, "rank 1") == 0);
    REQUIRE(error.elapsed_ms > 0 && error.elapsed_ms < PATIENCE_MS);
    REQUIRE(strlen(error.text) > 0);
    atp_work_free(work);
}

static void run_rank(atp_store* store, uint32_t rank, uint32_t generation) {
    struct atp_options options = options_of_test();
    struct atp_error error;
    atp_communicator* communicator;
    int ready_lines = 0;
    options.generation = generation;
    options.log_receiver = count_ready_lines;
    options.log_context = &ready_lines;
    SUCCEED(atp_communicator_create(store, rank, RANKS, &options, &communicator, &error));
    REQUIRE(atp_communicator_rank(communicator) == rank && atp_communicator_world(communicator) == RANKS);
    REQUIRE(ready_lines == 1);
    check_sums(communicator);
    check_others(communicator);
    check_handles(communicator);
    check_refusals(communicator);
    check_counters(communicator);
    check_departure(communicator);
    atp_communicator_destroy(communicator);
}

/* ---------------------------------------------------------------------------------- A store of the program's own */

struct entry {
    char key[256];
    char value[4096];
    size_t bytes;
};

struct table {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct entry entries[64];
    size_t count;
};

static struct entry* find(struct table* table, const char* key) {
    size_t i;
    for (i = 0; i < table->count; ++i) {
        if (strcmp(table->entries[i].key, key) == 0) return &table->entries[i];
    }
    return NULL;
}

static int set_value(void* context, const char* key, const void* value, size_t value_bytes) {
    struct table* table = context;
    struct entry* entry;
    pthread_mutex_lock(&table->mutex);
    entry = find(table, key);
    if (entry == NULL) {
        REQUIRE(table->count < sizeof table->entries / sizeof table->entries[0]);
        entry = &table->entries[table->count++];
        strcpy(entry->key, key);
    }
    REQUIRE(value_bytes <= sizeof entry->value);
    memcpy(entry->value, value, value_bytes);
    entry->bytes = value_bytes;
    pthread_cond_broadcast(&table->changed);
    pthread_mutex_unlock(&table->mutex);
    return ATP_REASON_NONE;
}

static int get_value(void* context, const char* key, int64_t timeout_ms, void* value, size_t capacity,
                     size_t* value_bytes) {
    struct table* table = context;
    struct entry* entry;
    int result = ATP_REASON_TIMED_OUT;
    pthread_mutex_lock(&table->mutex);
    /* Ignores the length of the timeout: the time limit of the whole test bounds the wait. */
    while ((entry = find(table, key)) == NULL && timeout_ms > 0) pthread_cond_wait(&table->changed, &table->mutex);
    if (entry != NULL) {
        *value_bytes = entry->bytes;
        result = entry->bytes <= capacity ? ATP_REASON_NONE : ATP_REASON_TOO_LARGE;
        if (result == ATP_REASON_NONE) memcpy(value, entry->value, entry->bytes);
    }
    pthread_mutex_unlock(&table->mutex);
    return result;
}

static struct table shared_table = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {{{0}, {0}, 0}}, 0};

/* ----------------------------------------------------------------------------------------------------------- Threads
 */

static const char* tcp_address;
static atp_store* memory_store;

static void* rank_over_tcp(void* rank) {
    struct atp_error error;
    atp_store* store;
    SUCCEED(atp_store_connect(tcp_address, PATIENCE_MS, &store, &error));
    run_rank(store, *(const uint32_t*)rank, 0);
    atp_store_destroy(store);
    return NULL;
}

static void* rank_in_memory(void* rank) {
    run_rank(memory_store, *(const uint32_t*)rank, 1);
    return NULL;
}

static void* rank_with_own_store(void* rank) {
    struct atp_store_callbacks callbacks;
    struct atp_error error;
    atp_store* store;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.struct_size = sizeof callbacks;
    callbacks.context = &shared_table;
    callbacks.set = set_value;
    callbacks.get = get_value;
    SUCCEED(atp_store_from_callbacks(&callbacks, &store, &error));
    run_rank(store, *(const uint32_t*)rank, 0);
    atp_store_destroy(store);
    return NULL;
}

static void run_ranks(void* (*body)(void*)) {
    pthread_t threads[RANKS];
    uint32_t ranks[RANKS];
    uint32_t rank;
    for (rank = 0; rank < RANKS; ++rank) {
        ranks[rank] = rank;
        REQUIRE(pthread_create(&threads[rank], NULL, body, &ranks[rank]) == 0);
    }
    for (rank = 0; rank < RANKS; ++rank) REQUIRE(pthread_join(threads[rank], NULL) == 0);
}

/* ------------------------------------------------------------------------------------------- Without a communicator */

static void check_options(void) {
    struct newer_options {
        struct atp_options known;
        uint64_t unknown;
    } newer;
    struct atp_options options;
    struct atp_error error;
    atp_communicator* communicator;
    atp_options_init(&options, sizeof options);
    REQUIRE(options.struct_size == sizeof options && options.channels == 1 && options.scale == 1e8);
    REQUIRE(options.join_timeout_ms == 30000 && options.timeout_ms == 300000 && strcmp(options.name, "atp") == 0);
    REQUIRE(options.reserved_1 == 1 && options.spin_us == 0 && options.socket_buffer_bytes == 8u << 20);
    REQUIRE(options.switch_address == NULL && options.rack == NULL && options.multicast == NULL);
    REQUIRE(options.dedicated_servers == NULL && options.cores == NULL);

    /* A program compiled with an older header: the library neither reads nor writes beyond the shorter struct. */
    memset(&newer, 0x5A, sizeof newer);
    atp_options_init(&newer.known, offsetof(struct atp_options, join_timeout_ms));
    REQUIRE(newer.known.join_timeout_ms == 0x5A5A5A5A5A5A5A5A);
    newer.known.switch_address = switch_address;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &newer.known, &communicator, &error) == ATP_REASON_NONE);
    atp_communicator_destroy(communicator);

    /* A program compiled with a newer header: an unknown field other than 0 is an error, and 0 is accepted. */
    atp_options_init(&newer.known, sizeof newer);
    newer.known.switch_address = switch_address;
    newer.known.generation = 7;
    newer.unknown = 1;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &newer.known, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(communicator == NULL && strstr(error.text, "version") != NULL);
    newer.unknown = 0;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &newer.known, &communicator, &error) == ATP_REASON_NONE);
    atp_communicator_destroy(communicator);

    options.core_count = 1;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text, "cores") != NULL);
    options.core_count = 0;
    options.reserved_1 = 0;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text, "reserved_1") != NULL);
    options.reserved_1 = 1;
    options.server = 7;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text,
                   "server: '7' is invalid; use switch, colocated, dedicated, auto, hosts, leaves or racks") != NULL);
    options.server = 256; /* the low byte is 0: the library must check the whole number */
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text, "server: '256' is invalid") != NULL);
    options.server = ATP_SERVER_ON_SWITCH;
    options.lane_type = -1;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text, "lane_type: '-1' is invalid") != NULL);
    options.lane_type = ATP_LANE_INT32;
    options.multicast = "10.0.0.0/8";
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text, "multicast: '10.0.0.0/8' is invalid") != NULL);
    options.multicast = NULL;
    options.channels = 65;
    REQUIRE(atp_communicator_create(memory_store, 0, 1, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(strstr(error.text, "channels: '65' is invalid; use a whole number from 1 to 64") != NULL);
    options.channels = 1;
    REQUIRE(atp_communicator_create(memory_store, 0, 0, &options, &communicator, &error) == ATP_REASON_MALFORMED);
    REQUIRE(atp_communicator_create(NULL, 0, 1, &options, &communicator, NULL) == ATP_REASON_MALFORMED);
}

/* Programs that were compiled with an older header keep working: fields are only appended. */
static void check_layout(void) {
#if UINTPTR_MAX == UINT64_MAX
#define OFFSET(field) offsetof(struct atp_options, field)
    static const size_t offsets[][2] = {{OFFSET(switch_address), 8},
                                        {OFFSET(channels), 16},
                                        {OFFSET(lanes), 20},
                                        {OFFSET(window), 24},
                                        {OFFSET(audit), 28},
                                        {OFFSET(scale), 32},
                                        {OFFSET(reserved_1), 40},
                                        {OFFSET(server), 44},
                                        {OFFSET(dedicated_servers), 48},
                                        {OFFSET(dedicated_server_count), 56},
                                        {OFFSET(join_timeout_ms), 64},
                                        {OFFSET(timeout_ms), 72},
                                        {OFFSET(name), 80},
                                        {OFFSET(generation), 88},
                                        {OFFSET(busy_poll_us), 92},
                                        {OFFSET(spin_us), 96},
                                        {OFFSET(cores), 104},
                                        {OFFSET(core_count), 112},
                                        {OFFSET(socket_buffer_bytes), 120},
                                        {OFFSET(reserved), 124},
                                        {OFFSET(scaling), 128},
                                        {OFFSET(lane_type), 132},
                                        {OFFSET(rack), 136},
                                        {OFFSET(multicast), 144}};
#undef OFFSET
    size_t i;
    for (i = 0; i < sizeof offsets / sizeof offsets[0]; ++i) REQUIRE(offsets[i][0] == offsets[i][1]);
    REQUIRE(sizeof(struct atp_options) >= 152);
    REQUIRE(sizeof(struct atp_error) == 1168 && sizeof(struct atp_buffer) == 24);
#endif
}

/* CMakeLists.txt defines the version of the library. */
static void check_version(void) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ATP_VERSION_MAJOR, ATP_VERSION_MINOR, ATP_VERSION_PATCH);
    REQUIRE(strcmp(version, atp_version()) == 0);
#if ATP_VERSION_NUMBER < 100 || ATP_VERSION_NUMBER / 10000 != ATP_VERSION_MAJOR
#error "ATP_VERSION_NUMBER is not the release of the header"
#endif
}

static void check_stores(void) {
    struct newer_callbacks {
        struct atp_store_callbacks known;
        void* unknown;
    } newer;
    struct atp_error error;
    struct atp_store_callbacks callbacks;
    atp_store* store;
    REQUIRE(atp_store_connect("no port here", 100, &store, &error) == ATP_REASON_MALFORMED);
    REQUIRE(store == NULL && strlen(error.text) > 0);
    memset(&callbacks, 0, sizeof callbacks);
    REQUIRE(atp_store_from_callbacks(&callbacks, &store, &error) == ATP_REASON_MALFORMED);

    /* Programs compiled with an older header, which lacks `add`, and with a newer one. */
    callbacks.struct_size = offsetof(struct atp_store_callbacks, add);
    callbacks.set = set_value;
    callbacks.get = get_value;
    SUCCEED(atp_store_from_callbacks(&callbacks, &store, &error));
    atp_store_destroy(store);
    newer.known = callbacks;
    newer.known.struct_size = sizeof newer;
    newer.unknown = &store;
    REQUIRE(atp_store_from_callbacks(&newer.known, &store, &error) == ATP_REASON_MALFORMED);
    REQUIRE(store == NULL && strstr(error.text, "newer libatp") != NULL);
    newer.unknown = NULL;
    SUCCEED(atp_store_from_callbacks(&newer.known, &store, &error));
    atp_store_destroy(store);
    atp_store_destroy(NULL);
    atp_communicator_destroy(NULL);
    atp_work_free(NULL);
    atp_store_server_destroy(NULL);
}

int main(void) {
    struct atp_error error;
    atp_store_server* server;
    REQUIRE(strcmp(atp_reason_name(ATP_REASON_TIMED_OUT), "timed out") == 0);
    REQUIRE(strcmp(atp_operation_name(ATP_OPERATION_ALL_REDUCE), "all_reduce") == 0);
    switch_address = start_test_switch();
    REQUIRE(switch_address != NULL);
    SUCCEED(atp_store_in_memory(&memory_store, &error));
    check_version();
    check_stores();
    check_layout();
    check_options();

    SUCCEED(atp_store_server_start("127.0.0.1:0", &server, &error));
    tcp_address = atp_store_server_address(server);
    run_ranks(rank_over_tcp);
    atp_store_server_destroy(server);
    run_ranks(rank_in_memory);
    run_ranks(rank_with_own_store);

    atp_store_destroy(memory_store);
    stop_test_switch();
    puts("every function did what its header says");
    return 0;
}
