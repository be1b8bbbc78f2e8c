"""Pushes or pulls with the Python package oras: oras_client.py push REFERENCE FILE[:TYPE], or oras_client.py pull REFERENCE."""

import sys

import oras.client

what, reference = sys.argv[1:3]
client = oras.client.OrasClient(insecure=True, hostname=reference.split("/")[0])
if what == "push":
    client.push(target=reference, files=sys.argv[3:]).raise_for_status()
else:
    client.pull(target=reference, outdir=".")
