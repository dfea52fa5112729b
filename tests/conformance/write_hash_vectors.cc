// SPDX-License-Identifier: Apache-2.0
// Writes hash.json to stdout. No build runs this program: if the hashes change, a developer runs it and commits the
// output. See hash_conformance_test.cc.
#include "hash_vectors.h"
#include "vector_file.h"

int main(int argument_count, char** arguments) {
    using namespace atp::conformance;
    return write_vectors({arguments, static_cast<std::size_t>(argument_count)}, hash_vectors_to_json(hash_vectors()),
                         {});
}
