# How every library, program and test of the project is compiled.
find_package(Threads REQUIRED)

add_library(sluice_flags INTERFACE)
# No contraction: a row's arithmetic must not depend on which loop the compiler fused (design: bit-equal chunks).
target_compile_options(sluice_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -ffp-contract=off $<$<BOOL:${SLUICE_WERROR}>:-Werror>>)
target_include_directories(sluice_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(sluice_flags INTERFACE Threads::Threads)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_FUZZ)
  target_compile_options(sluice_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_compile_definitions(sluice_flags INTERFACE SLUICE_FUZZ)
endif()

# sluice_library(base SOURCES a.cc DEPENDS sluice_x PRIVATE_DEPENDS fmt::fmt)
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(sluice_${name} PUBLIC sluice_flags ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
endfunction()

# sluice_test(NAME text SOURCES a_test.cc DEPENDS sluice_text [LABELS quick] [NEEDS_SHARED] [SHARDS n])
# One gtest program, each test of which ctest runs alone, or with SHARDS as n processes of many. NEEDS_SHARED: it reads SLUICE_SHARED_DIR, gets the label `quick_shared`, and is not registered where
# that folder is absent.
function(sluice_test)
  cmake_parse_arguments(ARG "NEEDS_SHARED" "NAME;SHARDS" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS quick)
  endif()
  if(ARG_NEEDS_SHARED)
    if(NOT EXISTS ${SLUICE_SHARED_DIR}/goldens)
      set_property(GLOBAL APPEND PROPERTY SLUICE_UNREGISTERED ${ARG_NAME})
      return()
    endif()
    string(APPEND ARG_LABELS "_shared")  # one label: gtest_discover_tests takes no list
  endif()
  add_executable(${ARG_NAME}_tests ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME}_tests PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${ARG_NAME}_tests PRIVATE
    SLUICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SLUICE_SHARED_DIR="${SLUICE_SHARED_DIR}"
    SLUICE_PROGRAM="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/sluice")
  target_include_directories(${ARG_NAME}_tests PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  # Test code is compiled once and runs for milliseconds; what it tests is optimised.
  target_compile_options(${ARG_NAME}_tests PRIVATE $<$<CONFIG:Release>:-O0>)
  set_target_properties(${ARG_NAME}_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # Thousands of small cases take longer to start one by one than to run.
  if(ARG_SHARDS)
    math(EXPR last "${ARG_SHARDS} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${ARG_NAME}.shard_${shard} COMMAND ${ARG_NAME}_tests --gtest_brief=1)
      set_tests_properties(${ARG_NAME}.shard_${shard} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
    return()
  endif()
  # Long programs repeat tests of quick ones; a name stands for one test.
  set(prefix)
  if(ARG_LABELS MATCHES long)
    set(prefix TEST_PREFIX long.)
  endif()
  gtest_discover_tests(${ARG_NAME}_tests ${prefix} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300)
endfunction()
