/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a switch for tests in C: the interface of the library has no switch. */
#ifndef ATP_TESTS_C_API_SWITCH_H
#define ATP_TESTS_C_API_SWITCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the switch and returns its "host:port"; NULL: it did not start. */
const char* start_test_switch(void);
void stop_test_switch(void);

#ifdef __cplusplus
}
#endif

#endif
