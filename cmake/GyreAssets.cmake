# gyre_assets(TARGET file...) adds a source to the target that contains the files' text, and the function find_asset (assets.h)
# that returns it by file name. This file also finds Dygraphs, the charting library of the HTML report.
find_file(GYRE_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs REQUIRED)
find_file(GYRE_DYGRAPHS_CSS dygraph.min.css PATHS /usr/share/javascript/dygraphs REQUIRED)

function(gyre_assets target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_assets.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  set(assets)
  foreach(file IN LISTS ARGN)
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND assets ${file})
  endforeach()
  list(JOIN assets "|" files)
  add_custom_command(OUTPUT ${source} COMMAND ${CMAKE_COMMAND} -DOUT=${source} "-DFILES=${files}" -P ${script}
                     DEPENDS ${assets} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
