# Each module is one target. Headers are included as "module/file.h". The include path of a module holds only a link to
# the folder of the module. The compiler therefore finds "wire/packet.h" only for targets that link atp_wire, and the
# link graph is the dependency graph.
#
# Each module belongs to a set (docs/develop/architecture.md):
#   machine  decides; uses machines
#   driver   moves bytes, time and threads; uses machines and drivers
#   app      uses machines, drivers and apps
#   lab      uses all sets; only lab modules use it
set(ATP_LAYERS_DIR ${CMAKE_BINARY_DIR}/layers)
set(ATP_SETS machine driver app lab)
set(ATP_SET_machine machine)
set(ATP_SET_driver machine driver)
set(ATP_SET_app machine driver app)
set(ATP_SET_lab machine driver app lab)

# atp_module(NAME [VARIANT suffix] SET machine|driver|app|lab SOURCES ... USES module ... [PRIVATE_LINKS target ...]
# [APART source ...]): the library atp_NAME from this folder. Configuration fails if a module uses one that is not
# defined yet (a cycle), or one of a set that it may not use.
function(atp_module name)
  cmake_parse_arguments(arg "" "VARIANT;SET" "SOURCES;USES;PRIVATE_LINKS;PUBLIC_LINKS;DEFINITIONS;APART" ${ARGN})
  if(NOT arg_SET IN_LIST ATP_SETS)
    message(FATAL_ERROR "atp_module(${name}): SET ${arg_SET} is unknown: use one of ${ATP_SETS}")
  endif()
  foreach(used IN LISTS arg_USES)
    if(NOT TARGET atp_${used})
      message(FATAL_ERROR "atp_module(${name}) uses ${used}, which is not defined before it: a cycle, or a wrong name")
    endif()
    get_target_property(set_of_used atp_${used} ATP_SET)
    if(NOT set_of_used IN_LIST ATP_SET_${arg_SET})
      message(FATAL_ERROR "atp_module(${name}) of set ${arg_SET} uses ${used} of set ${set_of_used}: "
                          "only ${ATP_SET_${arg_SET}} are allowed")
    endif()
  endforeach()
  set(target atp_${name}${arg_VARIANT})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(root ${ATP_LAYERS_DIR}/${name})
  set(link ${root}/${folder})
  if(CMAKE_CURRENT_SOURCE_DIR STREQUAL ${CMAKE_SOURCE_DIR}/src/apps/${folder})
    set(link ${root}/apps/${folder})
  endif()
  cmake_path(GET link PARENT_PATH parent)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${link} SYMBOLIC)
  list(TRANSFORM arg_USES PREPEND atp_)
  list(TRANSFORM arg_PRIVATE_LINKS REPLACE "^fmt::fmt$" "fmt::fmt-header-only")
  if(ATP_SELF_CONTAINED)
    list(TRANSFORM arg_PRIVATE_LINKS REPLACE "^hwy::hwy$" "atp_highway_targets")
  endif()
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    target_include_directories(${target} PUBLIC ${root})
    target_link_libraries(${target} PUBLIC ${arg_USES} ${arg_PUBLIC_LINKS} PRIVATE atp_flags ${arg_PRIVATE_LINKS})
    # Not in the loops that each packet passes: these get packets whose lengths `wire` has checked. The laboratory gets
    # none of the network.
    if(NOT arg_SET STREQUAL lab AND NOT name MATCHES "^(numeric|tensor|protocol)$")
      target_link_libraries(${target} PRIVATE atp_hardening)
    endif()
    if(NOT name IN_LIST ATP_UNGROUPED_MODULES)
      target_link_libraries(${target} PRIVATE atp_checks)
    endif()
    target_compile_definitions(${target} PUBLIC ${arg_DEFINITIONS})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(ATP_COVERAGE AND arg_SET STREQUAL machine)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fkeep-inline-functions>)
    endif()
    if(ATP_SANITIZE OR arg_VARIANT OR NOT name IN_LIST ATP_UNGROUPED_MODULES)
      atp_group(${target} ${arg_APART})
    endif()
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${root})
    target_link_libraries(${target} INTERFACE ${arg_USES} ${arg_PUBLIC_LINKS})
    target_compile_definitions(${target} INTERFACE ${arg_DEFINITIONS})
  endif()
  set_target_properties(${target} PROPERTIES ATP_SET ${arg_SET})
endfunction()

# atp_use_headers(TARGET module ...): TARGET includes headers of these modules, whose objects another library holds.
function(atp_use_headers target)
  foreach(module IN LISTS ARGN)
    target_include_directories(${target} PRIVATE ${ATP_LAYERS_DIR}/${module})
    if(TARGET atp_${module})
      target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:atp_${module},INTERFACE_INCLUDE_DIRECTORIES>)
    endif()
  endforeach()
endfunction()
