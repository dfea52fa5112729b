# One helper, discovery, a timeout: no test left uncompiled, none that hangs the run.
include(GoogleTest)
find_package(GTest REQUIRED)

# atp_test(NAME SOURCES ... USES target ... [TIMEOUT seconds]): a GoogleTest program whose cases ctest sees one by one.
function(atp_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;USES;DEFINITIONS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_USES} atp_flags GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS} ATP_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} DISCOVERY_TIMEOUT 60)
endfunction()
