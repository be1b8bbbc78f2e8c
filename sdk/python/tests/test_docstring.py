"""Docstrings in the styles that there are."""

import pytest

from toolsrv._docstring import parse

GOOGLE = """Greets
    somebody.

    It does that politely:

    - with a word
    - and with a smile

    Args:
        name (str): Whom to
            greet.
        style: How: loud or not.
        *more: Others.

    Returns:
        str: The greeting
        as a text.

    Raises:
        ValueError: never.

    Example:
        >>> greet("Ada")
        'Hello, Ada!'
    """
NUMPY = """
    Greets somebody.

    Parameters
    ----------
    name : str
        Whom to
        greet.
    style, way : {"a", "b"}, optional
        How.

    Returns
    -------
    str
        The greeting.

    Raises
    ------
    ValueError
        Never.

    Notes
    -----
    It is polite.
    """
REST = """Greets somebody.

    It is polite.

    :param str name: Whom to
        greet.
    :param style: How.
    :type style: str
    :raises ValueError: never
    :returns: The greeting.
    :rtype: str
    """


def test_google():
    got = parse(GOOGLE)
    assert got.description.startswith(
        "Greets somebody.\n\nIt does that politely:\n\n- with a word\n- and with a smile\n\nExample:\n    >>> greet("
    )
    assert got.parameters == {"name": "Whom to greet.", "style": "How: loud or not.", "more": "Others."}
    assert got.result == "The greeting as a text."


def test_numpy():
    got = parse(NUMPY)
    assert got.description == "Greets somebody.\n\nNotes\n-----\n    It is polite." or "It is polite." in got.description
    assert "Never" not in got.description and "Whom" not in got.description
    assert got.parameters == {"name": "Whom to greet.", "style": "How.", "way": "How."}
    assert got.result == "The greeting."


def test_rest():
    got = parse(REST)
    assert got.description == "Greets somebody.\n\nIt is polite."
    assert got.parameters == {"name": "Whom to greet.", "style": "How."}
    assert got.result == "The greeting."


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        (None, "", {}),
        ("", "", {}),
        ("A.", "A.", {}),
        ("A.\nArgs:\n    a: b", "A.", {"a": "b"}),
        ("A.\n\nArgs:\n    none of note", "A.", {}),
        ("Note: a\nb", "Note: a b", {}),
        ("A.\n\nArgs: these are described elsewhere", "A.\n\nArgs: these are described elsewhere", {}),
        ("A.\n\nReturns the name: a text.", "A.\n\nReturns the name: a text.", {}),
        ("A.\n\nArgs:\n    a: One.\n\n        Two.\n    b:\n        Three.\nB.", "A.\n\nB.", {"a": "One.\n\nTwo.", "b": "Three."}),
        ("A\n\n    code\n    more\n\nB\nC", "A\n\n    code\n    more\n\nB C", {}),
        (":param x: y", "", {"x": "y"}),
        ("Use :param: so.", "Use :param: so.", {}),
        ("1. a\n2. b", "1. a\n2. b", {}),
    ],
)
def test_odd(text, description, parameters):
    got = parse(text)
    assert (got.description, got.parameters) == (description, parameters)
