# shellcheck shell=bash
# scripts/package's image: a minimal Debian with the Debian package in it. Sourced, never run.
# Uses root, stage, dist, version, architecture and made of scripts/package.
# shellcheck disable=SC2154

# The Debian whose libraries the executable was built with.
image_release=bookworm

# No daemon and no container engine: mmdebstrap makes the root, oci-archive.py an image of it.
# Debian's essential packages, a shell among them, since tests copy keys out with `cat`; no apt, no
# manuals, no translations.
make_image() {
  local name=pushrelay-$version-linux-$architecture.oci.tar deb needed hooks
  # The package of this run, not of one before.
  [[ " ${made[*]} " == *" deb "* ]] || { make_deb && made+=(deb); }
  deb=$(echo "$dist/pushrelay_${version}_"*.deb)
  needed=$(dpkg-deb --field "$deb" Depends | sed -e 's/ *([^)]*)//g' -e 's/, */,/g')
  say "installing a minimal Debian ($image_release) with the package"
  # How this machine's apt reaches the network; nothing of it stays in the image.
  apt-config dump | grep '^Acquire::' >"$stage/apt.conf"
  # Run by mmdebstrap's shell with the root as $1.
  # shellcheck disable=SC2016
  hooks=('cp "$DEB" "$1/tmp/package.deb"'
    'chroot "$1" dpkg --install /tmp/package.deb >/dev/null'
    'rm "$1/tmp/package.deb"'
    '"$ADD_USER" "$1"'
    'find "$1/var/cache" "$1/var/log" -type f -delete'
    'find "$1/var/lib/dpkg" -name "*-old" -delete')
  DEB=$deb ADD_USER=$root/Docker/add-user mmdebstrap --quiet --variant=essential \
    --include="$needed,ca-certificates" --aptopt="$stage/apt.conf" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    "${hooks[@]/#/--customize-hook=}" \
    "$image_release" "$stage/root" >&2 || fail "mmdebstrap failed; its message is above"
  # What a container engine brings itself, and what told apt where it is.
  (cd "$stage/root" && rm -rf dev/* etc/hostname etc/resolv.conf etc/apt var/lib/apt var/cache/apt)
  tar --directory "$stage/root" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --clamp-mtime \
    --numeric-owner --format=gnu --create --file "$stage/root.tar" .
  python3 Docker/oci-archive.py Docker/Dockerfile "$stage/root.tar" "$stage/image" \
    "$version" "$(git rev-parse HEAD 2>/dev/null || echo unknown)"
  mv "$stage/image" "$dist/$name"
  report image "$dist/$name"
}
