"""Encodings in which tables can be written and read."""

from __future__ import annotations

import codecs
import io

from anonymip.errors import InputError

_SAMPLE = 'Age,"1"\n'


def refuse_encoding(name: str) -> None:
    """Refuse an encoding in which a text that is written piece by piece does not come back.

    Such are made for single words, as punycode is, or for no text at all, as undefined. Unknown
    names are left to the reader, which names the file.

    Raises
    ------
    InputError
        Naming the encoding.
    """
    try:
        with io.TextIOWrapper(io.BytesIO(), encoding=name, newline="") as stream:
            for sign in _SAMPLE:
                stream.write(sign)
            stream.seek(0)
            comes_back = stream.read() == _SAMPLE
    except LookupError:
        return
    except ValueError:
        comes_back = False
    if not comes_back:
        raise InputError(
            f"encoding {name!r} is not one of tables", remedy="Give another, such as utf-8"
        )


def reading_name(encoding: str) -> str:
    """Return the codec that reads an encoding: UTF-8 files may start with a byte order mark.

    Raises
    ------
    LookupError
        If there is no such encoding.
    """
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name
