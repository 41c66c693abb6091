#!/usr/bin/env bash
# Checks that the files which the documents name exist: Markdown links, and paths in backquotes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=0
wrong=0
check() {  # check DOCUMENT PATH
  ((++count))
  [[ -e $2 || -e $(dirname "$1")/$2 ]] && return
  echo "$1 names $2, which is not there" >&2
  wrong=1
}

while IFS= read -r -d '' document; do
  while IFS= read -r path; do
    check "$document" "$path"
  done < <(
    # [text](path) without a scheme; `src/a.h`, `tools/x.sh`: a known folder first, NAME and FOLDER are placeholders.
    grep -oE '\]\([^)#]+' "$document" | sed 's/^](//' | grep -v '://' || true
    grep -oE '`(\./)?(apps|cmake|docs|models|src|tests|tools)/[A-Za-z0-9_./-]*`' "$document" | tr -d '`' |
      grep -vE 'NAME|FOLDER' || true
    grep -oE '`\./[a-z_]+\.sh' "$document" | tr -d '`' || true
  )
done < <(find README.md CHANGELOG.md docs models -name '*.md' -print0)

((count)) || { echo "error: no path was found in the documents" >&2; exit 1; }
((wrong == 0)) || { echo "error: documents name files that are not there" >&2; exit 1; }
echo "$count paths in the documents exist"
