#!/bin/busybox sh
# shellcheck shell=dash
# The guest's first process: loads the modules, mounts the host's file system under a layer in memory, runs node.sh in it and
# powers off. What run and it say to each other is in the folder with the 9p tag "control".
/bin/busybox --install -s /bin
PATH=/bin
mkdir -p /proc /sys /dev /host /layer /new
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/console 2>&1

run_node() {
    while read -r module; do
        insmod "/lib/$module" || return 1
    done </modules
    # Cached, since the host's files are expected to stay as they are; writes go to the layer and vanish with it.
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose host /host || return 1
    mount -t tmpfs -o size=75% layer /layer || return 1
    mkdir /layer/upper /layer/work
    mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /new || return 1
    mount --move /proc /new/proc
    mount --move /sys /new/sys
    mount --move /dev /new/dev
    mkdir -p /new/dev/pts /new/dev/shm
    mount -t devpts -o mode=620,ptmxmode=666 devpts /new/dev/pts
    mount -t tmpfs -o mode=1777 shm /new/dev/shm
    mount -t tmpfs -o mode=755 run /new/run
    mkdir -p /new/run/guest /new/run/lock
    # Not cached: the host reads while we write.
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none,access=any control /new/run/guest || return 1
    out=$(cat /new/run/guest/out)
    if [ -n "$out" ]; then
        mkdir -p "/new$out"
        mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none,access=any out "/new$out" || return 1
    fi
    chroot /new /bin/bash "$(cat /new/run/guest/source)/node.sh"
}

run_node || echo "guest: not all could be set up"
sync
# The chroot may have taken /proc with it.
[ -e /proc/sysrq-trigger ] || mount --move /new/proc /proc
echo o >/proc/sysrq-trigger
sleep 60
