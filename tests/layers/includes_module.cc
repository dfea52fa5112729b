// SPDX-License-Identifier: Apache-2.0
// A source of one module that uses another: the tests compile it with the include path of the one module and a
// header of the other.
#include ATP_HEADER_OF_THE_OTHER_MODULE

int main() { return 0; }
