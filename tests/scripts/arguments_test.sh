# arguments_test.sh SOURCE: every script prints its help, refuses options that it does not have, and takes paths from the caller's folder.
# They run in a copy of scripts/ alone that git does not know, and what would install or build is replaced by programs that note it.
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
mkdir "$work/tree" "$work/bin" "$work/caller"
cp -r "$source/scripts" "$work/tree"
for program in cmake apt-get dpkg-query debootstrap mmdebstrap mkdocs clang-tidy; do
  printf '#!/bin/sh\necho "%s $*" >>"%s/called"\nexit 1\n' "$program" "$work" >"$work/bin/$program"
done
printf '#!/bin/sh\necho "clang-format version 14.0.6"\n[ "$1" = --version ] || cat\n' >"$work/bin/clang-format"
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH GIT_CEILING_DIRECTORIES=$work
cd "$work/caller"
scripts=$work/tree/scripts
told() { timeout 20 "$scripts/$1" "${@:2}" >"$work/told" 2>&1 </dev/null; }
# refuses WORDS SCRIPT ARGUMENTS...: it ends with 2 and one line with these words.
refuses() {
  local code=0
  told "${@:2}" || code=$?
  [ $code -eq 2 ] || fail "${*:2}: exit code $code: $(cat "$work/told")"
  [ "$(wc -l <"$work/told")" -eq 1 ] && grep -qF -- "$1" "$work/told" || fail "${*:2}: no '$1' in: $(cat "$work/told")"
}

for path in "$scripts"/*; do
  script=${path##*/}
  [ -x "$path" ] || continue
  for flag in --help -h; do
    told "$script" "$flag" || fail "$script $flag: $(cat "$work/told")"
    [ -s "$work/told" ] && ! grep -q '^#' "$work/told" || fail "$script $flag prints: $(cat "$work/told")"
  done
  case $script in
    test) ;;  # its arguments are ctest's
    check-links | check-rooms) ! told "$script" --nonsense && grep -q 'arguments: --nonsense' "$work/told" || fail "$script takes --nonsense" ;;
    *) refuses "--nonsense" "$script" --nonsense ;;
  esac
done
[ ! -e "$work/called" ] || fail "before it looks at its options, a script calls $(cat "$work/called")"
refuses "too many arguments" golden HEAD HEAD

# Programs and folders from the caller's folder.
mkdir bin
ln -s "$(command -v python3)" bin/python
refuses "there is no program nowhere" install-python nowhere
printf '#!/bin/sh\nexit 1\n' >bin/torchless
chmod +x bin/torchless
refuses "bin/torchless has no torch" install-python bin/torchless
# shellcheck disable=SC1091
[ "$(. "$scripts/common.sh"; absolute bin/python)" = "$work/caller/bin/python" ] || fail "paths are not the caller's, or links are followed"
if [ "$(id -u)" -eq 0 ]; then
  printf '#!/bin/sh\necho "install ok installed"\n' >"$work/bin/dpkg-query"
  told test-on trixie there || true
  grep -qF " trixie $work/caller/there " "$work/called" || fail "test-on: the folder is not the caller's: $(cat "$work/called")"
fi

# Without git.
told check-format || fail "check-format: $(cat "$work/told")"
grep -q 'not checked' "$work/told" || fail "check-format does not say that it checks nothing: $(cat "$work/told")"
refuses "not checked" check-format --fix
mkdir -p "$work/tree/build/release"
echo '[]' >"$work/tree/build/release/compile_commands.json"
refuses "name the files" check-tidy
told check-tidy mine.cpp || true
grep -qF "$work/caller/mine.cpp" "$work/called" || fail "check-tidy: the file is not the caller's: $(cat "$work/called")"

# In a checkout.
if command -v git >/dev/null; then
  for room in plain 'with/plain' 'with TORCH'; do
    read -r folder torch <<<"$room"
    mkdir -p "$work/tree/gyre/$folder/part"
    echo "gyre_room(${folder//\//_}${torch:+ $torch} ROOMS core)" >"$work/tree/gyre/$folder/CMakeLists.txt"
    touch "$work/tree/gyre/$folder/"{room.cpp,part/of.cpp}
  done
  git -C "$work/tree" init -q
  git -C "$work/tree" add .
  : >"$work/called"
  told check-tidy || true
  found=$(grep -oE 'gyre/[^ ]*\.cpp' "$work/called" | sort | tr "\n" " ") || true
  [ "$found" = "gyre/plain/part/of.cpp gyre/plain/room.cpp gyre/with/plain/part/of.cpp gyre/with/plain/room.cpp " ] ||
    fail "check-tidy takes other files than those of rooms without torch: $found"
fi
