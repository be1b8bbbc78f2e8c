"""Runs when the engine starts, before any tool is known."""

import sys

import _toolsrv_absent

sys.meta_path.append(_toolsrv_absent.Finder)
