"""Pictures for a tool, and what else a manifest may say of it: checked as the server does, so that a mistake is found at build."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

_MAX_TITLE, _MAX_ICONS, _MAX_ICON_BYTES, _MAX_SIZES = 200, 8, 32 << 10, 16


@dataclass(frozen=True)
class Icon:
    """A picture that clients may show beside a tool.

    `src` is an address that begins with https://, or the picture itself as a data: URI in base64; all icons of a tool have 32 KiB of it
    together. `sizes` are like "48x48", or "any" for one that scales. `theme` says for what background it is made.
    """

    src: str
    mime_type: str = ""
    sizes: Sequence[str] = ()
    theme: Literal["", "light", "dark"] = ""

    def described(self) -> dict[str, Any]:
        """Returns the icon as a manifest has it."""
        members = {"src": self.src, "mimeType": self.mime_type, "sizes": list(self.sizes), "theme": self.theme}
        return {name: value for name, value in members.items() if value}


def check_icons(icons: Sequence[Icon]) -> None:
    """Raises a ValueError for what the server would refuse."""
    if len(icons) > _MAX_ICONS:
        raise ValueError(f"it has {len(icons)} icons, {_MAX_ICONS} are allowed")
    for number, icon in enumerate(icons, 1):
        if not isinstance(icon, Icon):
            raise ValueError(f"icon {number} is {icon!r:.80}: write Icon(src=…)")
        try:
            _check_icon(icon)
        except ValueError as error:
            raise ValueError(f"icon {number}: {error}") from None
    size = sum(len(icon.src.encode()) for icon in icons)
    if size > _MAX_ICON_BYTES:
        raise ValueError(
            f"the src of its icons have {size} bytes together, {_MAX_ICON_BYTES} are allowed: use smaller pictures, or https addresses"
        )


_IMAGE = re.compile(r"image/[a-z0-9][a-z0-9.+-]{0,62}")
_SIZE = re.compile(r"any|[1-9][0-9]{0,4}x[1-9][0-9]{0,4}")
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_REST = re.compile(r"(%[0-9a-fA-F]{2}|[A-Za-z0-9._~:/?#@!$&'()*+,;=\[\]-])*")


def _check_icon(icon: Icon) -> None:
    if not isinstance(icon.src, str):
        raise ValueError(f"its src is {icon.src!r:.80}, not a text")
    if icon.src.startswith("data:"):
        _check_data(icon)
    else:
        _check_address(icon.src)
    if icon.mime_type and not _IMAGE.fullmatch(icon.mime_type):
        raise ValueError(f'its mime_type {icon.mime_type!r:.80} is not the type of a picture: write it like "image/png"')
    if isinstance(icon.sizes, str):
        raise ValueError(f'its sizes are the text {icon.sizes!r:.80}: write a list, ["{icon.sizes:.20}"]')
    if len(icon.sizes) > _MAX_SIZES:
        raise ValueError(f"it has {len(icon.sizes)} sizes, {_MAX_SIZES} are allowed")
    for size in icon.sizes:
        if not isinstance(size, str) or not _SIZE.fullmatch(size):
            raise ValueError(f'{size!r:.80} is not a size: write it like "48x48", or "any" for a picture that scales')
    if icon.theme not in ("", "light", "dark"):
        raise ValueError(f"its theme {icon.theme!r:.80} is not known: it can be light or dark")


def _check_data(icon: Icon) -> None:
    kind, found, content = icon.src.removeprefix("data:").partition(";base64,")
    if not found or not _IMAGE.fullmatch(kind):
        raise ValueError('a data URI holds a picture in base64: write it like "data:image/png;base64,…"')
    if icon.mime_type and icon.mime_type != kind:
        raise ValueError(f"its data is {kind}, but its mime_type says {icon.mime_type}: remove one")
    try:
        raw = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    # Python takes bits behind the last byte; the server doesn't.
    if not raw or base64.b64encode(raw).decode() != content:
        raise ValueError('what follows ";base64," is not base64 with its padding')


def _check_address(src: str) -> None:
    if not src.startswith("https://"):
        raise ValueError(
            'its src is neither an https nor a data URI: give the address of a picture, "https://…", or the picture itself, '
            '"data:image/png;base64,…"'
        )
    address = src.removeprefix("https://")
    end = min((place for place in map(address.find, "/?#") if place >= 0), default=len(address))
    authority, rest = address[:end], address[end:]
    if "@" in authority:
        raise ValueError("its src has a user's name or password, which every client would see: remove it")
    if not _AUTHORITY.fullmatch(authority) or not _REST.fullmatch(rest):
        raise ValueError(f"its src {src!r:.200} is not an address: write a host after https://, and escape what a URI can't hold with %")


def check_title(title: str) -> None:
    """Raises a ValueError for a title that the server would refuse."""
    if not isinstance(title, str):
        raise ValueError(f"its title is {title!r:.80}, not a text")
    if not title:
        return
    if len(title) > _MAX_TITLE:
        raise ValueError(
            f"its title: {len(title)} characters are more than the {_MAX_TITLE} that are allowed: say the rest in the description"
        )
    if not title.strip():
        raise ValueError("its title: it is blank: leave it out, or say in a few words what the tool is")
    if any(_controls(character) for character in title):
        raise ValueError(
            "its title: it has line breaks, or other characters that control how text is shown: write it on one line, without them"
        )


def _controls(character: str) -> bool:
    """Reports whether a character controls how others are shown, so that a title could say something else than it seems to."""
    return unicodedata.category(character) in ("Cc", "Cs") or "\u2028" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
