# zsh_complete.zsh FOLDER WORD...: what zsh offers for the last word, with the
# completions in FOLDER; one candidate on a line. A shell behind a pseudo
# terminal has its compadd replaced, so that it prints what it would offer.
zmodload zsh/zpty || exit 1
folder=$1
shift

setup=$(mktemp)
cat >$setup <<'END'
PROMPT=
autoload -Uz compinit
compinit -u -D
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
zmodload zsh/zutil
mark() { print -r -- '<<MARK>>' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
compadd() {
    # -O, -A, -D: a helper asks for itself
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return $?
    fi
    local -a hits before hidden
    local hit behind=
    builtin compadd -A hits "$@"
    zparseopts -E P:=before p:=hidden
    (( ${@[(I)-*S=]} )) && behind='=' # not blanks and slashes
    for hit in $hits; do
        print -r -- "<<$IPREFIX$before[2]$hidden[2]$hit$behind>>"
    done
}
print '<<READY>>'
END

zpty shell zsh -f -i
zpty -w shell "fpath=(${(q)folder} \$fpath); . $setup"
# The line itself comes back first, as a terminal shows it.
while zpty -r shell line && [[ $line != '<<READY>>'* ]]; do :; done
rm -f $setup
zpty -w -n shell "$*"$'\t'
marks=0
while zpty -r shell line; do
    line=${line%%[$'\r\n']*}
    if [[ $line == *'<<MARK>>' ]]; then
        (( ++marks == 2 )) && break
    elif [[ $line == *'<<'*'>>' ]]; then
        line=${line##*'<<'}
        print -r -- ${line%'>>'}
    fi
done
zpty -d shell
