/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks sum three numbers. Start a switch, then both ranks:
 *   atp switch --listen 127.0.0.1:4790 &
 *   hello 127.0.0.1:4790 127.0.0.1:29500 0 & hello 127.0.0.1:4790 127.0.0.1:29500 1
 */
#include <atp/atp.h>
#include <stdio.h>
#include <stdlib.h>

static struct atp_error error;

static void check(int reason) {
    if (reason == ATP_REASON_NONE) return;
    fprintf(stderr, "%s: %s: %s\n", atp_operation_name(error.operation), atp_reason_name(reason), error.text);
    exit(1);
}

int main(int argc, char** argv) {
    const uint32_t rank = argc == 4 && argv[3][0] == '1' ? 1 : 0;
    float values[3] = {1, 2, 3};
    struct atp_options options;
    atp_store_server* server = NULL; /* in rank 0: where the ranks find each other */
    atp_store* store;
    atp_communicator* ranks;
    if (argc != 4) return fprintf(stderr, "usage: hello SWITCH STORE RANK\n"), 2;
    if (rank == 0) check(atp_store_server_start(argv[2], &server, &error));
    check(atp_store_connect(argv[2], 30000, &store, &error));
    atp_options_init(&options, sizeof options);
    options.switch_address = argv[1];
    check(atp_communicator_create(store, rank, 2, &options, &ranks, &error));
    check(atp_all_reduce(ranks, values, values, 3, ATP_ELEMENT_FLOAT32, ATP_REDUCTION_SUM, ATP_TIMEOUT_OF_OPTIONS,
                         &error));
    printf("rank %u: %g %g %g\n", (unsigned)rank, values[0], values[1], values[2]);
    atp_communicator_destroy(ranks);
    atp_store_destroy(store);
    atp_store_server_destroy(server);
    return 0;
}
