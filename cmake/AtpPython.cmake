# Python and the torch that it imports, without find_package(Torch): that asks for compilers of every device that torch
# was built for.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(fmt REQUIRED)
execute_process(
  COMMAND ${Python3_EXECUTABLE} -c "import torch, os; print(os.path.dirname(torch.__file__), torch.__version__, sep=';')"
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE complaint RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "ATP_PYTHON needs a Python that imports torch, and ${Python3_EXECUTABLE} does not:\n${complaint}"
                      "Name another one with -DPython3_EXECUTABLE=...")
endif()
list(GET found 0 torch_dir)
list(GET found 1 torch_version)
message(STATUS "Found torch ${torch_version} of ${Python3_EXECUTABLE}")

add_library(atp_torch_libraries INTERFACE)
target_include_directories(atp_torch_libraries SYSTEM INTERFACE
  ${torch_dir}/include ${torch_dir}/include/torch/csrc/api/include)
target_compile_definitions(atp_torch_libraries INTERFACE TORCH_API_INCLUDE_EXTENSION_H)
# No path to them: `import torch`, which precedes, has loaded them.
target_link_directories(atp_torch_libraries INTERFACE ${torch_dir}/lib)
target_link_libraries(atp_torch_libraries INTERFACE c10 torch_cpu torch_python)
