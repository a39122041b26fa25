#!/usr/bin/env bash
# Checks that comments, documents and messages use plain technical words; a rule of ARCHITECTURE.md.
set -euo pipefail
cd "$(dirname "$0")/.."

# Vague subjects, and riddles for terms that the field has. Names in backquotes are allowed.
words=(
    'nobody' 'anybody' 'everybody' 'somebody' 'someone' 'no one' 'whoever' 'whomever' # name the actor: a client, a caller, a process
    'anew'                    # again
    'obey' 'weigh'            # follow, check
    'garbage'                 # malformed input
    'in vain'                 # without a result
    'held against'            # checked by, compared with
    'gives? way'              # has a lower priority
    'says nothing' 'told by'  # does not name, follows from
    'looks? at' 'looked at'   # read, check
    'lent'                    # shared, borrowed
    'stands? still'           # blocks, stalls
    'extension, chapter'      # a document that is not here: say what is meant
)
pattern=$(IFS='|'; echo "${words[*]}")

# As grep, but it fails only when grep cannot search.
search() {
    grep "$@" || [ $? = 1 ]
}

# A comment begins a line or follows white space, so that URLs are none.
comments=$(search -rnPi "(^|\s)//.*(?<![\w\`-])($pattern)(?![\w\`-])" --include='*.rs' \
    --exclude-dir=target --exclude-dir=node_modules .)
documents=$(search -rnPi "(?<![\w\`-])($pattern)(?![\w\`-])" --include='*.md' --include='*.toml' --include='*.py' \
    --exclude-dir=target --exclude-dir=node_modules .)
# Code of the programs, of which messages are a part, and comments of the scripts and the pages.
messages=$(search -rnPi "(?<![\w\`-])($pattern)(?![\w\`-])" --include='*.rs' --exclude-dir=tests --exclude='*tests.rs' \
    --exclude=answers.rs agentcfg-core/src stores agentcfg-server/src agentcfg-client/src agentcfg-cli/src)
others=$(search -rnPi "(^|[\s{])(//|#|/\*\*?|\*) .*(?<![\w\`-])($pattern)(?![\w\`-])" \
    --include='*.ts' --include='*.tsx' --include='*.mjs' --include='*.sh' \
    --exclude-dir=target --exclude-dir=node_modules --exclude-dir=dist --exclude=check-words.sh .)
if [ -n "$comments$documents$messages$others" ]; then
    printf '%s\n' "$comments" "$documents" "$messages" "$others" | sed '/^$/d' >&2
    echo "error: say it in plain technical words, see scripts/check-words.sh" >&2
    exit 1
fi
echo "comments, documents and messages use none of ${#words[@]} words"
