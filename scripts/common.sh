# Sourced by the scripts here, before they leave the caller's folder. For -h or --help it prints the script's header comment and ends it.
for argument in "$@"; do
  case $argument in
    -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0"; exit 0 ;;
  esac
done

# takes COUNT OPTIONS "$@": ends the script with 2 if an argument is an option that is not among OPTIONS (separated by blanks), or if
# more than COUNT (or any) are not options.
takes() {
  local most=$1 options=$2 others=0 argument
  shift 2
  for argument in "$@"; do
    case $argument in
      -*) [[ " $options " = *" $argument "* ]] || refuse "there is no option $argument; see --help" ;;
      *) others=$((others + 1)) ;;
    esac
  done
  [ "$most" = any ] || [ "$others" -le "$most" ] || refuse "too many arguments; see --help"
}

# The number of cores. Not OMP_NUM_THREADS, which nproc would print.
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

refuse() { echo "scripts/$(basename "$0"): $1" >&2; exit 2; }

# absolute PATH: PATH from the caller's folder. Symbolic links stay, since a virtual environment's Python is one.
absolute() { realpath --canonicalize-missing --no-symlinks -- "$1"; }
