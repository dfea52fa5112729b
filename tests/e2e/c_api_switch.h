/* SPDX-License-Identifier: Apache-2.0 */
/* A switch for programs in C, which the library's interface has none of. */
#ifndef ATP_TESTS_C_API_SWITCH_H
#define ATP_TESTS_C_API_SWITCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* "host:port" of the switch, which runs until the other call; NULL: it did not start. */
const char* start_test_switch(void);
void stop_test_switch(void);

#ifdef __cplusplus
}
#endif

#endif
