// SPDX-License-Identifier: Apache-2.0
// Two ranks sum three numbers. Start a switch, then both ranks:
//   atp switch --listen 127.0.0.1:4790 &
//   hello 127.0.0.1:4790 127.0.0.1:29500 0 & hello 127.0.0.1:4790 127.0.0.1:29500 1
#include <atp/atp.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
    if (argc != 4) return std::fprintf(stderr, "usage: hello SWITCH STORE RANK\n"), 2;
    const unsigned rank = std::string(argv[3]) == "1" ? 1 : 0;
    std::optional<atp::StoreServer> server;  // in rank 0: where the ranks find each other
    if (rank == 0) server.emplace(argv[2]);
    const atp::Store store = atp::Store::connect(argv[2]);
    atp::Options options;
    options.switch_address = argv[1];
    atp::Communicator ranks(store, rank, 2, options);
    std::vector<float> values = {1, 2, 3};
    ranks.all_reduce(values);
    std::printf("rank %u: %g %g %g\n", rank, values[0], values[1], values[2]);
    return 0;
} catch (const atp::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
}
