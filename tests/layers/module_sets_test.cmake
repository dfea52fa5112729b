# SPDX-License-Identifier: Apache-2.0
# atp_module() stops the configuration if a module may not use another. The caller gives MODULES (the folder of
# AtpModule.cmake) and FOLDER. Each case is a project of a few modules without sources, and the expected error text; ""
# is success.
cmake_minimum_required(VERSION 3.22)

function(expect words)
  file(REMOVE_RECURSE ${FOLDER})
  list(JOIN ARGN "\n" modules)
  file(WRITE ${FOLDER}/CMakeLists.txt
       "cmake_minimum_required(VERSION 3.22)\nproject(sets NONE)\ninclude(${MODULES}/AtpModule.cmake)\n${modules}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${FOLDER} -B ${FOLDER}/build OUTPUT_QUIET ERROR_VARIABLE complaint
                  RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " complaint "${complaint}")
  if(words STREQUAL "" AND NOT status EQUAL 0)
    message(SEND_ERROR "refused, but allowed: ${ARGN}\n${complaint}")
  elseif(NOT words STREQUAL "" AND (status EQUAL 0 OR NOT complaint MATCHES "${words}"))
    message(SEND_ERROR "not refused with \"${words}\": ${ARGN}\n${complaint}")
  endif()
endfunction()

set(machine "atp_module(machine_a SET machine)")
set(driver "atp_module(driver_a SET driver USES machine_a)")
expect("" "${machine}" "${driver}" "atp_module(app_a SET app USES driver_a)" "atp_module(lab_a SET lab USES app_a)")
expect("of set machine uses driver_a of set driver" "${machine}" "${driver}" "atp_module(m SET machine USES driver_a)")
expect("of set driver uses lab_a of set lab" "atp_module(lab_a SET lab)" "atp_module(d SET driver USES lab_a)")
expect("of set app uses lab_a of set lab" "atp_module(lab_a SET lab)" "atp_module(a SET app USES lab_a)")
expect("of set driver uses app_a of set app" "atp_module(app_a SET app)" "atp_module(d SET driver USES app_a)")
expect("not defined before it: a cycle" "atp_module(a SET machine USES b)" "atp_module(b SET machine USES a)")
expect("SET product is unknown" "atp_module(a SET product)")
