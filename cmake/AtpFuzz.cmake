# Each fuzz target is one of two programs. With ATP_FUZZ (the preset `fuzz`, needs Clang), it is a libFuzzer program.
# ctest runs it for ATP_FUZZ_SECONDS, starting from the committed corpus. Without ATP_FUZZ, it has a small main() that
# replays the corpus. Every build therefore compiles the target, and tests every committed input.
set(ATP_FUZZ_SECONDS 15 CACHE STRING "How long ctest lets each libFuzzer target search")
if(ATP_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "ATP_FUZZ needs Clang for libFuzzer, not ${CMAKE_CXX_COMPILER_ID}: use `cmake --preset fuzz`")
endif()

# atp_fuzz(NAME SOURCES ... USES target ... CORPUS folder [MAX_BYTES longest input]): sources define
# run() of tests/fuzz/input.h; the folder, relative to this one, holds the committed inputs.
function(atp_fuzz name)
  cmake_parse_arguments(arg "" "CORPUS;MAX_BYTES" "SOURCES;USES" ${ARGN})
  if(NOT arg_MAX_BYTES)
    set(arg_MAX_BYTES 4096)
  endif()
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS})
  add_executable(${name} ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/tests/fuzz/target.cc)
  target_link_libraries(${name} PRIVATE ${arg_USES} atp_flags)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz)
  if(NOT ATP_FUZZ)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME fuzz.${name}.corpus COMMAND ${name} ${corpus})
    set_tests_properties(fuzz.${name}.corpus PROPERTIES TIMEOUT 120 LABELS fuzz)
    return()
  endif()
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  # libFuzzer writes new inputs to the build folder. A person copies those that are worth keeping into the corpus.
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${name}.found)
  file(MAKE_DIRECTORY ${found})
  add_test(NAME fuzz.${name}.search
           COMMAND ${name} -max_total_time=${ATP_FUZZ_SECONDS} -max_len=${arg_MAX_BYTES} -timeout=10 -rss_limit_mb=2048
                   -print_final_stats=1 -artifact_prefix=${found}/ ${found} ${corpus})
  math(EXPR timeout_s "${ATP_FUZZ_SECONDS} + 120")
  set_tests_properties(fuzz.${name}.search PROPERTIES TIMEOUT ${timeout_s} LABELS fuzz)
endfunction()
