# engine_project_test.sh BUILD SOURCE COMPILER: everything installed, and a project outside the tree that registers an optimizer of its
# own, found by CMake and by pkg-config, and trains with it.
set -euo pipefail
build=$1 source=$2 compiler=$3
export CMAKE_GENERATOR=Ninja  # as gyre is built; make may not be there
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# Files are for all to read, whatever the umask.
(umask 077 && for component in gyre core-dev engine-dev; do
  cmake --install "$build" --component "$component" --prefix "$work/installed" >"$work/install.txt"
done)
secret=$(find "$work/installed" -type f ! -perm -a+r)
[ -z "$secret" ] || fail "only its owner can read $secret"
example=$source/examples/own-optimizer
cmake -S "$example" -B "$work/own" -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$compiler" \
  >"$work/configured.txt" 2>&1 || fail "configure: $(cat "$work/configured.txt")"
cmake --build "$work/own" >"$work/built.txt" 2>&1 || fail "build: $(cat "$work/built.txt")"

cd "$work"
for i in $(seq 1 200); do echo "verse $i: and the waters of $((i * 7919 % 1000)) were upon the hills"; done >text.txt
installed/bin/gyre prepare text.txt --out tokens --tokenizer bpe --vocab-size 300 >/dev/null 2>&1 || fail "gyre prepare"
printf '[model]\nlayers = 2\nwidth = 16\nheads = 2\ncontext = 16\n[data]\ntokens = "tokens"\n[pipeline]\nstages = 2\n' >run.toml
trained() { # trained PROGRAM RUN: the weights' checksum after two updates
  "$1" train run.toml --out "$2" --set optimizer.kind=sign --set run.updates=2 >told.txt 2>&1 || fail "$1: $(cat told.txt)"
  grep -q 'sign, lr' told.txt || fail "$1 does not know its optimizer: $(cat told.txt)"
  sha256sum <"$2/checkpoints/step-00000002/model.safetensors"
}
# wrote PROGRAM RUN: a text. The tokenizer is a module, which the program has in another folder.
wrote() { "$1" generate "$2" --prompt 'verse' --tokens 4 --seed 1 2>told.txt || fail "$1: $(cat told.txt)"; }
by_cmake=$(trained own/own_optimizer run)
wrote own/own_optimizer run >text-by-cmake.txt

# From another place than that of the configured prefix.
mv installed moved
pc=$(dirname "$(find moved -name gyre-engine.pc)")
flags() { PKG_CONFIG_PATH=$pc pkg-config "$@" gyre-engine; }
# shellcheck disable=SC2046
"$compiler" "$example/own_optimizer.cpp" $(flags --cflags) -o by-pkg-config $(flags --libs)
[ "$(trained ./by-pkg-config run2)" = "$by_cmake" ] || fail "pkg-config's program trains something else"
wrote ./by-pkg-config run2 | cmp - text-by-cmake.txt || fail "pkg-config's program writes something else"

# A project that can do without the engine is configured where libtorch is missing.
mkdir without
cat >without/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(without LANGUAGES CXX)
find_package(gyre REQUIRED OPTIONAL_COMPONENTS engine)
if(gyre_engine_FOUND OR NOT TARGET gyre::gyre)
  message(FATAL_ERROR "engine: ${gyre_engine_FOUND}")
endif()
CMAKE
cmake -S without -B without/build -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON \
  >told.txt 2>&1 || fail "configure: $(cat told.txt)"
