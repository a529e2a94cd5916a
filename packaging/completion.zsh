# WORD...: one of them, or a file or folder
_plimsoll_path() {
  local -a what
  (( $# )) && what=("words:word:($*)")
  _alternative $what 'files:file:_files'
}

_plimsoll_dataset() {
  local -a expl names
  names=(data/*(-/N:t))
  _wanted datasets expl dataset compadd -a names
}

_plimsoll() {
  local key
  local -a keys rows
  if (( CURRENT == 2 )); then
    _describe -t commands command _plimsoll_commands
    _arguments --help --version
    return
  fi
  shift words
  (( CURRENT-- ))
  _plimsoll_takes $words[1] || return
  for key in $keys; do
    rows+=("$_plimsoll_keys[$key]")
  done
  _arguments --help $rows
}

_plimsoll "$@"
