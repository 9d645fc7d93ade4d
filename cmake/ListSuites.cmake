# cmake -D PROGRAM=... -D PREFIX=room. -D LABEL=room -D FILE=... -P ListSuites.cmake
# Writes FILE for ctest: a test for each suite of the GoogleTest program, and one for each case named Slow*, which is left out of
# its suite's. By suites, since a process that loads libtorch takes half a second of processor time before its first case.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${failed}")
endif()

set(content "")
# add(NAME FILTER LABEL SECONDS)
function(add name filter label seconds)
  string(APPEND content "add_test([=[${PREFIX}${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
         "set_tests_properties([=[${PREFIX}${name}]=] PROPERTIES LABELS ${label} TIMEOUT ${seconds})\n")
  set(content "${content}" PARENT_SCOPE)
endfunction()

string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}")  # types and values of parameters
string(REPLACE "\n" ";" lines "${listed}")
set(suite "")
foreach(line ${lines})
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
    set(added FALSE)
  elseif(line MATCHES "^  (Slow[^ ]*)")
    add(${suite}.${CMAKE_MATCH_1} ${suite}.${CMAKE_MATCH_1} slow 7200)
  elseif(line MATCHES "^  [^ ]" AND NOT added)
    add(${suite} "${suite}.*-${suite}.Slow*" ${LABEL} 1800)
    set(added TRUE)
  endif()
endforeach()
file(WRITE ${FILE} "${content}")
