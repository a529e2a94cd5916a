# Whether the word to complete is the Nth behind the program's name.
function __plimsoll_at
    test (count (commandline -opc)) -eq $argv[1]
end

# Whether the line's command is one of these.
function __plimsoll_in
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv
end

# Likewise, and a key is being typed: its name, or, behind "=", its value. fish
# by itself would leave the "=" out.
function __plimsoll_key
    string match -qr -- '^-[^=]*$' (commandline -ct); and __plimsoll_in $argv
end

function __plimsoll_value
    string match -q -- '-*=*' (commandline -ct); and __plimsoll_in $argv
end

# Configs, and the folders where some may be; an out_dir is one as well.
function __plimsoll_configs
    set -l begun (commandline -ct)
    string match -q -- '-*' $begun; and return
    for path in $begun*.py $begun*/
        echo $path
    end
end

function __plimsoll_datasets
    for path in data/*/
        basename $path
    end
end

complete -c plimsoll -f
complete -c plimsoll -n '__plimsoll_at 1' -a help
complete -c plimsoll -n '__plimsoll_at 1' -l version
complete -c plimsoll -l help
