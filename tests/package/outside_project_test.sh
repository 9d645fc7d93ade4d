# outside_project_test.sh BUILD SOURCE COMPILER: the part that is free of libtorch, installed by itself, is found by CMake and by
# pkg-config, and serves a project that registers a schedule of its own and simulates it. Nothing looks for libtorch.
set -euo pipefail
build=$1 source=$2 compiler=$3
export CMAKE_GENERATOR=Ninja  # as gyre is built; make may not be there
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

cmake --install "$build" --component core-dev --prefix "$work/installed" >"$work/install.txt"
configure() {
  cmake -S "$1" -B "$2" -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON >"$work/configured.txt" 2>&1
}

# By CMake: the example.
configure "$source/examples/own-schedule" "$work/own" || fail "configure: $(cat "$work/configured.txt")"
cmake --build "$work/own" >"$work/built.txt" 2>&1 || fail "build: $(cat "$work/built.txt")"
"$work/own/own_schedule" >"$work/simulated.txt" || fail "it does not run"
grep -q '^last-first' "$work/simulated.txt" || fail "no 'last-first' in: $(cat "$work/simulated.txt")"
if ldd "$work/own/own_schedule" | grep -qi torch; then fail "it loads libtorch"; fi

# By pkg-config: the same program, from another place than that of the configured prefix.
mv "$work/installed" "$work/moved"
pc=$(dirname "$(find "$work/moved" -name gyre.pc)")
flags() { PKG_CONFIG_PATH=$pc pkg-config "$@" gyre; }
# shellcheck disable=SC2046
"$compiler" "$source/examples/own-schedule/own_schedule.cpp" $(flags --cflags) -o "$work/by-pkg-config" $(flags --libs)
"$work/by-pkg-config" | cmp - "$work/simulated.txt" || fail "pkg-config's program says something else"

# Folders that are not below the prefix.
cmake -S "$source" -B "$work/apart" -DGYRE_TORCH=OFF -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_INSTALL_PREFIX="$work/prefix" \
  -DCMAKE_INSTALL_LIBDIR="$work/libraries" -DCMAKE_INSTALL_INCLUDEDIR=headers >"$work/configured.txt" 2>&1 || fail "configure: $(cat "$work/configured.txt")"
told=$(PKG_CONFIG_PATH=$work/apart pkg-config --variable=libdir gyre):$(PKG_CONFIG_PATH=$work/apart pkg-config --variable=includedir gyre)
[ "$told" = "$work/libraries:$work/prefix/headers" ] || fail "pkg-config tells $told"

# Every public header finds what it includes among the public ones; private ones are not there.
(cd "$work/moved/include" && find gyre -name '*.h' | sort | sed 's/.*/#include "&"/') >"$work/all.cpp"
grep -q '"gyre/app/programs.h"' "$work/all.cpp" || fail "programs.h is not installed"
# shellcheck disable=SC2046
"$compiler" -fsyntax-only $(flags --cflags) "$work/all.cpp" || fail "a public header needs what is not installed"
for private in schedule/first_ready.h tokenizers/json/model.h tensors/lease.h; do
  [ ! -e "$work/moved/include/gyre/$private" ] || fail "$private is installed"
done

# What is not there is told.
mkdir "$work/wrong"
for component in engine wings; do
  cat >"$work/wrong/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(wrong LANGUAGES CXX)
find_package(gyre REQUIRED COMPONENTS $component PATHS "$work/moved")
CMAKE
  ! configure "$work/wrong" "$work/wrong-$component" || fail "component $component is found"
  tr -s ' \n' ' ' <"$work/configured.txt" >"$work/told.txt"
  case $component in
    engine) words='without its component engine' ;;
    wings) words='no component wings' ;;
  esac
  grep -q "$words" "$work/told.txt" || fail "no '$words' in: $(cat "$work/told.txt")"
done
