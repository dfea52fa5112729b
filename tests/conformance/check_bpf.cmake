# Compiles SOURCE for the kernel's virtual machine into OBJECT and has CHECKER look at what came out. CLANG may end in
# NOTFOUND.
if(NOT CLANG)
  message("skipped: no clang is installed")
  return()
endif()
execute_process(COMMAND ${CLANG} --print-targets OUTPUT_VARIABLE targets ERROR_VARIABLE targets RESULT_VARIABLE failed)
if(failed OR NOT targets MATCHES "bpf")
  message("skipped: ${CLANG} has no bpf target")
  return()
endif()
execute_process(COMMAND ${CLANG} -target bpf -std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdinc
                        -I${INCLUDE} -c ${SOURCE} -o ${OBJECT}
                ERROR_VARIABLE errors RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "it does not compile for bpf:\n${errors}")
endif()
execute_process(COMMAND ${CHECKER} ${OBJECT} OUTPUT_VARIABLE words ERROR_VARIABLE words RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${words}")
endif()
message("${words}")
