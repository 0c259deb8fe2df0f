# Functions for scripts that need more of Debian than this system has installed (source this file from bash).

# mirror: the one that this system uses.
mirror()
{
	sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\).*/\2/p' \
		/etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | head -n 1
}

# copy_checkout DIRECTORY [TAR OPTION]...: this checkout, without git's files, made anew there.
copy_checkout()
{
	local directory=$1
	shift
	rm -rf "$directory" && mkdir -p "$directory" && tar -cf - --exclude=./.git "$@" . | tar -xf - -C "$directory"
}
