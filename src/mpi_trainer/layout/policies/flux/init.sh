#!/bin/sh
# Runs in the image that has Flux: copies it to where the node's container finds it.
set -eu
root=/mnt/flux
mkdir -p "$root/view"
# A spack view: its entries are links into /opt/software.
for view in /opt/views/._view/*/; do
    cp -R "$view." "$root/view"
done
cp -R /opt/software "$root/"
chmod -R a+rX "$root/view" "$root/software"
