/* SPDX-License-Identifier: Apache-2.0 */
/* Uses nothing but the installed header and library. */
#include <atp/atp.h>
#include <stdio.h>

int main(void) {
    struct atp_options options;
    atp_options_init(&options, sizeof options);
    printf("%s\n", atp_version());
    return options.channels == 0;
}
