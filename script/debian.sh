# Functions for scripts that need more of Debian than this system has installed (source this file from bash).

# mirror: the one that this system uses.
mirror()
{
	sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\).*/\2/p' \
		/etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | head -n 1
}

# bootstrap ROOT SUITE SCRIPT [OPTION]...: the release as it comes, by the debootstrap script of that name; anew if a
# former try stopped halfway. A file "ready" says that it is whole.
bootstrap()
{
	local root=$1 file
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase "${@:4}" "$2" "$root" "$(mirror)" "$3" || return 1
	# Options of this system's apt, a proxy for instance, are wanted there, too; but for those that a package brings along.
	for file in /etc/apt/apt.conf.d/*; do
		dpkg-query -S "$file" >/dev/null 2>&1 || cp "$file" "$root/etc/apt/apt.conf.d/"
	done
	# Such a system is soon made again and need not be safe on the disk.
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	mkdir -p "$root/etc/postgresql-common" "$root/dev/shm"
	echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.conf"
	touch "$root/ready"
}

MOUNTED= # by mount_on, latest first

# mount_on PLACE ARGUMENT...: unless something is mounted there.
mount_on()
{
	local place=$1
	shift
	mountpoint -q "$place" && return 0
	mount "$@" "$place" && MOUNTED="$place $MOUNTED"
}

# mount_system ROOT: what programs in such a system need.
mount_system()
{
	mount_on "$1/proc" -t proc proc && mount_on "$1/dev/shm" -t tmpfs -o mode=1777 shm
}

unmount_all()
{
	# shellcheck disable=SC2086
	[ -z "$MOUNTED" ] || umount $MOUNTED
	MOUNTED=
}

# within ROOT COMMAND...: with that system as the root of all files, and with mounts, processes and shared memory of its
# own: they end with it. Unlike in chroot, programs there may make namespaces. The shell stays, as their first process,
# which has to wait for whatever loses its parent: a server that was killed is there as long as nobody does.
within()
{
	local root=$1
	shift
	# shellcheck disable=SC2016
	unshare --mount --pid --ipc --fork --kill-child sh -c 'mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc &&
		mount -t sysfs sys sys && mount -t tmpfs -o mode=1777 shm dev/shm && { [ ! -c /dev/net/tun ] || { mkdir -p dev/net &&
		touch dev/net/tun && mount --bind /dev/net/tun dev/net/tun; }; } && pivot_root . mnt && cd / && umount --lazy /mnt ||
		exit 125; "$@"; exit $?' "$root" env -u TMPDIR "$@"
}

EMULATED= # by emulate_arm64: it has to be undone

# emulate_arm64: from here on the kernel runs programs for arm64, in any root, by QEMU. Nothing to do on arm64.
emulate_arm64()
{
	local binfmt=/proc/sys/fs/binfmt_misc
	[ "$(uname -m)" != aarch64 ] || return 0
	command -v qemu-aarch64-static >/dev/null || apt-get install -y -q --no-install-recommends qemu-user-static || return 1
	mount_on "$binfmt" -t binfmt_misc binfmt_misc || return 1
	grep -qs '^enabled' "$binfmt/qemu-aarch64" && return 0
	# The kernel opens the interpreter now (flag F), so no root needs to have it.
	cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$binfmt/register" && EMULATED=1
}

end_emulation()
{
	[ -z "$EMULATED" ] || echo -1 >/proc/sys/fs/binfmt_misc/qemu-aarch64
	EMULATED=
}

# copy_cross_compiler ROOT: GCC that runs on this machine and compiles for arm64, in ROOT/cross, with the names that
# make looks for in ROOT/cross/bin. It finds headers and libraries where that system has them.
copy_cross_compiler()
{
	local root=$1 triplet=aarch64-linux-gnu name program library
	command -v $triplet-gcc >/dev/null || apt-get install -y -q --no-install-recommends gcc-$triplet || return 1
	rm -rf "$root/cross" && mkdir -p "$root/cross/bin" || return 1
	(cd / && exec tar -cf - --exclude=lto1 --exclude=plugin usr/bin/$triplet-* usr/lib/gcc-cross/$triplet usr/$triplet/bin) |
		tar -C "$root/cross" -xf - || return 1
	for name in gcc ar ranlib strip nm objdump readelf; do
		ln -s "../usr/bin/$triplet-$name" "$root/cross/bin/$name"
	done
	# Their libraries, and the loader, lie where they expect them.
	for program in "$root"/cross/usr/bin/* "$root"/cross/usr/lib/gcc-cross/"$triplet"/*/{cc1,collect2}; do
		ldd "$program" 2>/dev/null
	done | grep -o '/lib[^ ]*' | sort -u | while read -r library; do
		mkdir -p "$root${library%/*}" && cp -Lu "$library" "$root$library" || return 1
	done
}

# copy_checkout DIRECTORY [TAR OPTION]...: this checkout, without git's files, made anew there.
copy_checkout()
{
	local directory=$1
	shift
	rm -rf "$directory" && mkdir -p "$directory" && tar -cf - --exclude=./.git "$@" . | tar -xf - -C "$directory"
}

# source_tar PREFIX: the files of this checkout that belong to the project, as a tar below PREFIX that is the same
# whenever and by whomever it is made. Their time is SOURCE_DATE_EPOCH.
source_tar()
{
	{ git ls-files -z --cached --others --exclude-standard 2>/dev/null ||
		find . -path ./build -prune -o -path ./.git -prune -o ! -type d ! -name '*.so' -print0; } |
		tar -cf - --null -T - --transform="s,^\(\./\)\?,$1/," --sort=name --owner=0 --group=0 --numeric-owner \
			--mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH"
}
