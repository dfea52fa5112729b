# Finds Python and its torch for the backend in python/. If Python3_EXECUTABLE is not set, CMake uses the Python of
# tools/setup.sh, or any other if that is missing. With ATP_PYTHON=AUTO, this file sets ATP_PYTHON to ON or OFF. It does
# not use find_package(Torch), which requires compilers for every device that torch was built for.
set(ATP_TORCH_DIR "" CACHE PATH "Folder that tools/fetch_torch wrote: build for its torch, without a Python")
if(NOT ATP_PYTHON)
  return()
endif()
if(ATP_TORCH_DIR)
  file(READ ${ATP_TORCH_DIR}/torch.txt torch)
  string(STRIP "${ATP_TORCH_DIR};${torch}" torch)
  set(torch_owner ${ATP_TORCH_DIR})
  set(result 0)
else()
  if(NOT DEFINED Python3_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
    set(Python3_EXECUTABLE ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
  endif()
  find_package(Python3 3.9 COMPONENTS Interpreter)
  if(Python3_FOUND)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/describe_torch.py
      OUTPUT_VARIABLE torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE complaint RESULT_VARIABLE result)
  else()
    set(result "Python not found")
  endif()
  set(torch_owner ${Python3_EXECUTABLE})
endif()
if(NOT result EQUAL 0)
  if(NOT ATP_PYTHON STREQUAL AUTO)
    message(FATAL_ERROR "ATP_PYTHON needs Python 3.9 with torch, which ${Python3_EXECUTABLE} has not:\n"
                        "${complaint}Name another one with -DPython3_EXECUTABLE=...")
  endif()
  message(STATUS "No Python with torch: the backend for PyTorch is not built")
  set(ATP_PYTHON OFF)
  return()
endif()
set(ATP_PYTHON ON)
list(GET torch 0 torch_dir)
list(GET torch 1 torch_version)
list(GET torch 2 torch_new_abi)
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_release ${torch_version})
message(STATUS "Found torch ${torch_version} of ${torch_owner}")
# Wheels of torch before 2.7 have the string type of gcc 4, so this build must use it too. It then cannot build programs
# that link system libraries with strings in their interface: C++ tests and benchmarks.
set(ATP_OLD_STRINGS OFF)
if(NOT torch_new_abi)
  set(ATP_OLD_STRINGS ON)
  add_compile_definitions(_GLIBCXX_USE_CXX11_ABI=0)
endif()

find_package(fmt REQUIRED)
add_library(atp_torch_libraries INTERFACE)
target_include_directories(atp_torch_libraries SYSTEM INTERFACE
  ${torch_dir}/include ${torch_dir}/include/torch/csrc/api/include)
# Needs no run-time path: `import torch` loads these libraries first.
target_link_directories(atp_torch_libraries INTERFACE ${torch_dir}/lib)
target_link_libraries(atp_torch_libraries INTERFACE c10 torch_cpu)
