# Writes OUT, a C++ source that has the text of FILES (separated by |) as raw strings under their names.
string(REPLACE "|" ";" files "${FILES}")
set(text "// Made from files by cmake/embed.cmake.\n#include \"gyre/report/html/assets.h\"\n\n#include <array>\n\nnamespace gyre {\nnamespace {\n\n")
string(APPEND text "struct Asset {\n  std::string_view name, text;\n};\nconstexpr auto kAssets = std::to_array<Asset>({\n")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" content)
  # What a browser's tools would ask the network for.
  string(REGEX REPLACE "(//|/[*])# sourceMappingURL=[^\n]*" "" content "${content}")
  string(APPEND text "{\"${name}\", R\"gyre_asset(${content})gyre_asset\"},\n")
endforeach()
string(APPEND text "});\n\n}  // namespace\n\nstd::string_view find_asset(std::string_view name) {\n  for (const Asset& asset : kAssets) {\n    if (asset.name == name) return asset.text;\n  }\n  return {};\n}\n\n}  // namespace gyre\n")
file(WRITE "${OUT}" "${text}")
