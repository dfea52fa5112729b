// SPDX-License-Identifier: Apache-2.0
// Writes switchml.json to stdout, or its packets as files for the fuzzer (tests/fuzz/corpus/switchml): the two
// committed forms of the vectors. No build runs this program: if the format changes, a developer runs it and commits
// the output.
#include "switchml_vectors.h"
#include "vector_file.h"

int main(int argument_count, char** arguments) {
    using namespace atp::conformance;
    const auto vectors = switchml_vectors();
    return write_vectors({arguments, static_cast<std::size_t>(argument_count)}, switchml_vectors_to_json(vectors),
                         corpus_of(vectors));
}
