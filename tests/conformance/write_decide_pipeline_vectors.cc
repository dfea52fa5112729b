// SPDX-License-Identifier: Apache-2.0
// Writes decide_pipeline.json to stdout. No build runs this program: if the decisions change, a developer runs it and
// commits the output. See decide_pipeline_conformance_test.cc.
#include "decide_pipeline_vectors.h"
#include "vector_file.h"

int main(int argument_count, char** arguments) {
    using namespace atp::conformance;
    return write_vectors({arguments, static_cast<std::size_t>(argument_count)},
                         pipeline_vectors_to_json(pipeline_vectors()), {});
}
