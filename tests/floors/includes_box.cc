// SPDX-License-Identifier: Apache-2.0
// A source of one box that uses another: the test beside it compiles this with the include path of the one, for each
// header of the other.
#include ATP_HEADER_OF_THE_OTHER_BOX

int main() { return 0; }
