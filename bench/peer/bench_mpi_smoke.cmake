# cmake -DBENCH=path -DMPIRUN=path -P bench_mpi_smoke.cmake: three ranks sum little data.
cmake_minimum_required(VERSION 3.22)

set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
execute_process(COMMAND ${MPIRUN} --oversubscribe -n 3 ${BENCH} --bytes 40KiB --rounds 2 --json
  OUTPUT_VARIABLE json ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}: ${json}${said}")
endif()
string(JSON bytes GET "${json}" bytes)
string(JSON seconds LENGTH "${json}" seconds)
if(NOT bytes EQUAL 40960 OR NOT seconds EQUAL 2)
  message(FATAL_ERROR "${json}")
endif()

foreach(bad "--bytes;6" "--rounds;0" "--no-such-flag")
  execute_process(COMMAND ${BENCH} ${bad} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
  list(GET bad 0 flag)
  string(FIND "${said}" "${flag}" named)
  if(NOT status EQUAL 2 OR named EQUAL -1)
    message(FATAL_ERROR "${bad}: exit status ${status}, said: ${said}")
  endif()
endforeach()
