#!/bin/bash
# usage: fetch_source.sh PACKAGE FOLDER: the Debian source package, unpacked into FOLDER/PACKAGE, from the mirrors that
# this machine's apt uses. Nothing of the system is changed: lists and sources are temporary. What the machine needs is apt
# and dpkg-dev. Exit status 77 when the sources cannot be had, with the reason.
set -u
package=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
skip() { echo "skipped: $*"; exit 77; }
command -v apt-get >/dev/null || skip "no apt-get to get the source package $package with"
command -v dpkg-source >/dev/null || skip "no dpkg-source to unpack the source package $package (Debian: dpkg-dev)"
[ -d "$folder/$package" ] && exit 0

# Both forms of apt's configuration, as deb-src: one line ("deb [options] uri suite components") and deb822 ("Types: deb").
# Only what has Debian's own release files: others need not have sources.
awk '/^[ \t]*deb[ \t]/ && /debian/ { sub(/deb/, "deb-src"); print }' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null >"$temporary/sources.list"
mkdir "$temporary/parts" "$temporary/lists" "$temporary/work"
cp "$temporary/sources.list" "$temporary/parts/one-line.list"
for f in /etc/apt/sources.list.d/*.sources; do
    [ -f "$f" ] || continue
    # A paragraph at a time.
    awk 'BEGIN { RS = ""; ORS = "\n\n" } /debian/ && /(^|\n)Types:[^\n]*deb/ && !/(^|\n)Enabled: *no/ {
        sub(/(^|\n)Types:[^\n]*/, "\nTypes: deb-src"); sub(/^\n/, ""); print }' "$f" >"$temporary/parts/$(basename "$f")"
done
options=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$temporary/parts"
    -o "Dir::State::Lists=$temporary/lists" -o "APT::Get::List-Cleanup=0" -o "Acquire::Languages=none"
    -o "APT::Sandbox::User=$(id -un)" -o "Dir::Cache::srcpkgcache=" -o "Dir::Cache::pkgcache=" -q)
apt-get "${options[@]}" update >"$temporary/log" 2>&1 ||
    skip "no source package $package: apt-get update with deb-src: $(grep -m 1 '^[EW]:' "$temporary/log")"
cd "$temporary/work" || exit 1
apt-get "${options[@]}" source "$package" >>"$temporary/log" 2>&1 ||
    skip "no source package $package: $(grep -m 1 '^E:' "$temporary/log")"
tree=$(find . -mindepth 1 -maxdepth 1 -type d | head -n 1)
[ -n "$tree" ] || skip "the source package $package has no folder"
mv "$tree" "$folder/$package"
