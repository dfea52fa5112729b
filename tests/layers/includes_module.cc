// SPDX-License-Identifier: Apache-2.0
// Includes a header of one module. The tests compile it with the include paths of another module.
#include ATP_HEADER_OF_THE_OTHER_MODULE

int main() { return 0; }
