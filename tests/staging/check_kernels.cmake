# Compiles the CUDA kernels to PTX and checks the PTX. The caller sets NVCC, OPTIONS, SOURCE (the folder src) and OUTPUT
# (a file).
execute_process(COMMAND ${NVCC} -ptx -std=c++20 ${OPTIONS} -I${SOURCE}/machines -I${SOURCE}/drivers -o ${OUTPUT}
                        ${SOURCE}/drivers/staging/cuda_kernels.cu
                COMMAND_ERROR_IS_FATAL ANY)
file(READ ${OUTPUT} ptx)
foreach(kernel load_integers load_floats store)
  foreach(format DeviceFloat32 DeviceFloat64 DeviceFloat16 DeviceBfloat16)
    if(NOT ptx MATCHES "\\.entry [^\n(]*${kernel}_kernel[^\n(]*[0-9]${format}E")
      message(SEND_ERROR "no kernel ${kernel} of ${format}")
    endif()
  endforeach()
endforeach()
foreach(rounding_of_its_own fma "\\.ftz" "\\.approx")
  if(ptx MATCHES "\n[^\n]*${rounding_of_its_own}[^\n]*")
    message(SEND_ERROR "an instruction that rounds otherwise than a processor: ${CMAKE_MATCH_0}")
  endif()
endforeach()
