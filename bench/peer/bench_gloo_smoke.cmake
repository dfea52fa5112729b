# cmake -DBENCH=path -DFOLDER=scratch -P bench_gloo_smoke.cmake: three ranks over loopback sum little data with each
# algorithm.
cmake_minimum_required(VERSION 3.22)

foreach(algorithm ring bcube halving_doubling ring_chunked)
  file(REMOVE_RECURSE ${FOLDER})
  file(MAKE_DIRECTORY ${FOLDER})
  set(rank ${BENCH} --world 3 --store ${FOLDER} --address 127.0.0.1 --algorithm ${algorithm} --bytes 40KiB --rounds 2
           --json --rank)
  # The commands of one call run at the same time; the output of the last one is kept.
  execute_process(COMMAND ${rank} 2 COMMAND ${rank} 1 COMMAND ${rank} 0
    OUTPUT_VARIABLE json RESULTS_VARIABLE statuses)
  if(NOT statuses STREQUAL "0;0;0")
    message(FATAL_ERROR "${algorithm}: exit statuses ${statuses}: ${json}")
  endif()
  string(JSON bytes GET "${json}" bytes)
  string(JSON seconds LENGTH "${json}" seconds)
  if(NOT bytes EQUAL 40960 OR NOT seconds EQUAL 2)
    message(FATAL_ERROR "${algorithm}: ${json}")
  endif()
  foreach(field rounds median_seconds min_seconds max_seconds goodput_bps latency_us)
    string(JSON number GET "${json}" ${field})
    if(NOT number GREATER 0)
      message(FATAL_ERROR "${algorithm}: ${field} is ${number}")
    endif()
  endforeach()
endforeach()

set(usual --rank 0 --world 1 --store ${FOLDER})
foreach(bad "--bytes;6" "--rank;1" "--algorithm;magic" "--rounds;0" "--no-such-flag")
  execute_process(COMMAND ${BENCH} ${usual} ${bad} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
  list(GET bad 0 flag)
  string(FIND "${said}" "${flag}" named)
  if(NOT status EQUAL 2 OR named EQUAL -1)
    message(FATAL_ERROR "${bad}: exit status ${status}, said: ${said}")
  endif()
endforeach()
