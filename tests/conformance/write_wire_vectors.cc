// SPDX-License-Identifier: Apache-2.0
// Writes wire.json to stdout, or the packets that fit a fuzzer's input as files (tests/fuzz/corpus/decode): the two
// committed forms of the vectors. No build runs this program: if the format changes, a developer runs it and commits
// the output. See wire_conformance_test.cc.
#include "vector_file.h"
#include "wire_vectors.h"

int main(int argument_count, char** arguments) {
    using namespace atp::conformance;
    const auto vectors = wire_vectors();
    return write_vectors({arguments, static_cast<std::size_t>(argument_count)}, wire_vectors_to_json(vectors),
                         corpus_of(fuzzer_vectors()));
}
