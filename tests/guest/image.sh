#!/bin/bash
# usage: image.sh CACHE: prints the folder that holds what a guest boots: `vmlinux` and `initrd.gz`. Made at the first use
# under CACHE and kept: Debian's newest kernel package is downloaded by apt and unpacked, not installed. Starts in parallel are
# safe. Exit status 77 when the kernel cannot be had, 1 when the image cannot be made.
set -eu
here=$(dirname "$(realpath "$0")")
PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$1"
cache=$(realpath "$1")
exec 8>"$cache/lock"
flock 8 # held by our children, too
rm -rf "$cache"/new.* # left by one that was killed
work=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# What the guest loads, in this order; what each needs comes before it. crc32_generic is what rdma_rxe asks the kernel's crypto
# for by name, so nothing but this list says that it is needed; the variant with carry-less multiplication is slower emulated.
modules="virtio_pci 9pnet_virtio 9p overlay crc32_generic rdma_rxe ib_uverbs rdma_ucm ib_umad veth virtio_net sch_netem"

say() { echo "tests/guest: $*" >&2; }

# Package lists of our own, for a machine that has none or outdated ones: needs no root and changes nothing of the machine.
own=(-o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
own_lists() {
    [ ! -d "$work/apt" ] || return 0 # fetched a moment ago
    say "apt's package lists are missing or outdated; fetching them"
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    apt-get -q "${own[@]}" update >"$work/apt/log" 2>&1
}

newest_kernel() { # apt option...
    apt-cache "$@" depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }'
}

# Leaves the package of kernel $package in folder $1, or of a newer one, when the archive no longer has the one that apt knows.
download() {
    local newest
    (cd "$1" && apt-get -q download "$package") >"$1/log" 2>&1 && return 0
    own_lists || return 1
    newest=$(newest_kernel "${own[@]}")
    [ -n "$newest" ] && package=$newest && (cd "$1" && apt-get -q "${own[@]}" download "$package") >"$1/log" 2>&1
}

# The kernel's ELF image out of the bzImage: QEMU starts it seconds sooner, since the guest need not unpack it. The boot header
# (Linux Documentation/arch/x86/boot.rst) says where the packed kernel is: setup_sects, payload_offset, payload_length.
unpack_kernel() { # bzImage vmlinux
    local sectors offset length
    field() { od -An -v -j "$1" -N "$2" -t "u$2" "$image" | tr -d ' '; }
    local image=$1
    sectors=$(field $((0x1f1)) 1) offset=$(field $((0x248)) 4) length=$(field $((0x24c)) 4)
    tail -c +$(((sectors + 1) * 512 + offset + 1)) "$1" | head -c "$length" >"$2.packed" || true
    case $(od -An -N 4 -t x1 "$2.packed" | tr -d ' ') in # the last four bytes are the size, no part of the stream
    fd377a58) head -c -4 "$2.packed" | xz -dc >"$2" ;;
    28b52ffd) head -c -4 "$2.packed" | zstd -dqc >"$2" ;;
    *) say "the kernel in $1 is packed in a way that is not known here" && return 1 ;;
    esac
    rm "$2.packed"
}

# busybox, init and the modules, in a compressed cpio archive.
make_initrd() { # root-of-unpacked-package version initrd.gz
    local root=$1 version=$2 tree=$1/initrd m module
    mkdir -p "$tree/bin" "$tree/lib"
    cp "$(command -v busybox)" "$tree/bin/busybox"
    cp "$here/init.sh" "$tree/init"
    chmod 755 "$tree/bin/busybox" "$tree/init"
    depmod -b "$root" "$version"
    for m in $modules; do
        modprobe -d "$root" -S "$version" --show-depends "$m" || return 1
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r module; do
        cp "$module" "$tree/lib/"
        module=$tree/lib/${module##*/}
        case $module in *.xz) xz -d "$module" ;; *.zst) zstd -dq --rm "$module" ;; esac
        module=${module##*/}
        echo "${module%%.ko*}.ko"
    done >"$tree/modules"
    grep -q rdma_rxe "$tree/modules"
    (cd "$tree" && find . | cpio -o -H newc --quiet) | gzip -9 >"$3"
}

recipe=$(cat "$here/image.sh" "$here/init.sh" | md5sum | cut -c 1-8)
package=$(newest_kernel)
earlier=$(find "$cache" -maxdepth 1 -name "linux-image-*.$recipe" | sort -V | tail -n 1)
if [ -z "$package" ]; then
    [ -z "$earlier" ] || { echo "$earlier" && exit 0; } # apt knows nothing: an older kernel will do
    own_lists || true
    package=$(newest_kernel "${own[@]}")
    [ -n "$package" ] || { say "SKIP: apt does not know the package linux-image-amd64" && exit 77; }
fi
if [ -d "$cache/$package.$recipe" ]; then
    echo "$cache/$package.$recipe"
    exit 0
fi

say "making the guest's kernel image from $package (once)"
if ! download "$work"; then
    [ -z "$earlier" ] || { echo "$earlier" && exit 0; }
    sed 's/^/  /' "$work/log" >&2
    say "SKIP: the package $package could not be downloaded"
    exit 77
fi
mkdir "$work/root" "$work/image"
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work/root" ./boot ./lib/modules
version=$(basename "$work"/root/lib/modules/*)
unpack_kernel "$work/root/boot/vmlinuz-$version" "$work/image/vmlinux"
make_initrd "$work/root" "$version" "$work/image/initrd.gz"
find "$cache" -maxdepth 1 -name 'linux-image-*' -exec rm -rf {} + # what is outdated now
mv "$work/image" "$cache/$package.$recipe"
echo "$cache/$package.$recipe"
