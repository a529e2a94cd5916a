# The current word, or what stands behind the "=" in it: bash cuts words at
# "=", unless COMP_WORDBREAKS was changed.
_plimsoll()
{
    local cur=${COMP_WORDS[COMP_CWORD]} before='' key='' lead='' command=''
    COMPREPLY=()
    if [ "$COMP_CWORD" -lt 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_plimsoll_commands) help --help --version" -- "$cur")
        return
    fi
    before=${COMP_WORDS[COMP_CWORD - 1]}
    command=${COMP_WORDS[1]}
    if [[ $cur == --*=* ]]; then
        key=${cur%%=*} lead=${cur%%=*}= cur=${cur#*=}
    elif [[ $cur == = ]]; then
        key=$before cur=''
    elif [[ $before == = ]]; then
        key=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [ -n "$key" ]; then
        _plimsoll_value "${key#--}" "$cur" "$lead"
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_plimsoll_options "$command")" -- "$cur")
        if [[ ${COMPREPLY[0]} == *= ]]; then
            compopt -o nospace 2>/dev/null
        fi
    elif [ "$COMP_CWORD" -eq 2 ] && [ -n "$(_plimsoll_verb "$command")" ]; then
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_plimsoll_verb "$command")" -- "$cur")
    else
        compopt -o filenames 2>/dev/null
        if _plimsoll_reads_configs "$command"; then
            mapfile -t COMPREPLY < <(compgen -f -X '!*.py' -- "$cur"
                compgen -d -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
    fi
}

# KEY BEGINNING LEAD: what the value may be, with LEAD before it
_plimsoll_value()
{
    local place words
    read -r place words < <(_plimsoll_values "$1")
    mapfile -t COMPREPLY < <(
        compgen -W "$words" -P "$3" -- "$2"
        case $place in
        path) compgen -f -P "$3" -- "$2" ;;
        dataset) cd data 2>/dev/null && compgen -d -P "$3" -- "$2" ;;
        esac
    )
    if [ "$place" = path ] && [ -z "$3" ]; then
        compopt -o filenames 2>/dev/null
    fi
}

complete -F _plimsoll plimsoll
