#!/bin/bash
# usage: config/ci/dist.sh BUILD: packs the archive and holds its list of files against git's.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
git -c safe.directory='*' rev-parse HEAD >/dev/null || { echo "skipped: there is no git here to list the files" && exit 77; }
make -C "$1" -s distdir
dir=$(find "$1" -maxdepth 1 -name 'strata-*' -type d | head -n 1)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
# Files of git and of editors, and of the people who work on the tree, are no part of an archive.
missing=$(git -c safe.directory='*' ls-files | grep -vE '^\.(git|editorconfig)' | while IFS= read -r file; do
    [ -e "$dir/$file" ] || echo "$file"
done)
if [ -n "$missing" ]; then
    printf 'not in the archive, though git tracks it: %s\n' $missing
    exit 1
fi
echo "RESULT: $(find "$dir" -type f | wc -l) files"
