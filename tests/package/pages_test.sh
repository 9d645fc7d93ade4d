# pages_test.sh GYRE PAGES README: every command and flag that --help knows is in the man pages and is completed by bash, and by zsh
# and fish where they are installed; so are words that a value may be, and keys behind --set. The man pages have the README's exit codes.
set -euo pipefail
gyre=$1 pages=$2 readme=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*" >&2; exit 1; }
# lacks FILE WORDS...: those that are no line of it.
lacks() { local file=$1; shift; printf '%s\n' "$@" | grep -vxFf "$file" || true; }

mapfile -t commands < <("$gyre" --help | sed -n '/^Subcommands:/,$s/^  \([a-z-]*\) .*/\1/p')
[ ${#commands[@]} -ge 15 ] || fail "--help has only ${commands[*]}"
flags_of() { "$gyre" "$1" --help | grep -oE '^  -[^ =]+' | tr -d ' ' | sed 's/{[^}]*}//g' | tr , '\n'; }

# shellcheck disable=SC1091
. "$pages/gyre.bash"
# completed WORDS...: what bash offers for the last of them, a line each.
completed() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _gyre
  printf '%s\n' "${COMPREPLY[@]}"
}
completed gyre '' >offered
[ -z "$(lacks offered "${commands[@]}")" ] || fail "bash does not offer $(lacks offered "${commands[@]}")"
if command -v fish >/dev/null; then
  export XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work
  fish_offers() { fish --no-config -c "source '$pages/gyre.fish'; complete -C '$1'" | cut -f1; }
  fish_offers 'gyre ' >offered
  [ -z "$(lacks offered "${commands[@]}")" ] || fail "fish does not offer $(lacks offered "${commands[@]}")"
fi

count=0
for command in "${commands[@]}"; do
  mapfile -t flags < <(flags_of "$command")
  [ ${#flags[@]} -ge 2 ] || fail "$command: --help has only ${flags[*]}"
  page=$pages/gyre-$command.1
  sed 's/\\-/-/g; s/\\fB/\n/g; s/\\fR/\n/g' "$page" >page
  [ -z "$(lacks page "${flags[@]}")" ] || fail "$page lacks $(lacks page "${flags[@]}")"
  completed gyre "$command" - >offered
  [ -z "$(lacks offered "${flags[@]}")" ] || fail "bash, $command: lacks $(lacks offered "${flags[@]}")"
  if command -v zsh >/dev/null; then
    # What would be offered: _arguments' own words.
    zsh -fc '_arguments() { print -rl -- "$@" }; words=(gyre '"$command"' -); CURRENT=3; . "$1"' zsh "$pages/_gyre" |
      sed -nE 's/^\*?(-[a-z-]+)\[.*/\1/p' >offered
    [ -z "$(lacks offered "${flags[@]}")" ] || fail "zsh, $command: lacks $(lacks offered "${flags[@]}")"
  fi
  if command -v fish >/dev/null; then
    { fish_offers "gyre $command -"; fish_offers "gyre $command --"; } >offered
    [ -z "$(lacks offered "${flags[@]}")" ] || fail "fish, $command: lacks $(lacks offered "${flags[@]}")"
  fi
  count=$((count + ${#flags[@]}))
done

# Values.
[ "$(completed gyre simulate --schedule zb | tr '\n' ' ')" = 'zb-h1 zb-v ' ] || fail "bash does not offer zb-h1 and zb-v"
[ "$(completed gyre train --set model.ki)" = model.kind= ] || fail "bash does not offer model.kind="
[ "$(completed gyre train --set model.kind = b)" = bert ] || fail "bash does not offer bert"
mkdir -p place/directory; touch place/file
[ "$(cd place; completed gyre train --out '')" = directory ] || fail "bash offers more than directories for --out"
[ "$(completed gyre launch -n 2 -- train --resu)" = --resume ] || fail "bash does not see the command behind --"
if command -v fish >/dev/null; then
  [ "$(fish_offers 'gyre simulate --schedule zb-' | tr '\n' ' ')" = 'zb-h1 zb-v ' ] || fail "fish does not offer zb-h1 and zb-v"
  [ "$(fish_offers 'gyre train --set model.kind=b')" = model.kind=bert ] || fail "fish does not offer bert"
fi

# Exit codes.
sed -nE '/^\| exit code/,/^$/s/^\| ([0-9][0-9, ]*) \|.*/\1/p' "$readme" >codes
[ "$(wc -l <codes)" -ge 6 ] || fail "the README's table has only the exit codes $(tr '\n' ' ' <codes)"
for page in "$pages"/gyre.1 "$pages"/gyre-train.1; do
  sed -n '/^\.SH EXIT STATUS/,/^\.SH [^E]/p' "$page" | grep -A 1 -x '\.TP' | grep '^[0-9]' >page || fail "$page has no exit codes"
  diff codes page >difference || fail "$page: exit codes are not those of the README: $(tail -n +2 difference)"
done

# Pages that man can show.
if command -v man >/dev/null; then
  for page in "$pages"/*.1; do
    [ "${page##*/}" != gyre-engine.1 ] || continue  # refers to gyre.1, where both are installed
    told=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [ -z "$told" ] || fail "$page: $told"
  done
fi
echo "$count flags of ${#commands[@]} commands"
