"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def table(title: str, fields: Mapping[str, object]) -> str:
    """An HTML table of two columns. Empty fields are left out."""
    lines = [
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{_cell(value)}</td></tr>"
        for name, value in fields.items()
        if value is not None and value != [] and value != {}
    ]
    return f"<table><caption><b>{escape(title)}</b></caption><tbody>{''.join(lines)}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "<br>".join(f"{escape(str(name))}: {_cell(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "<br>".join(_cell(inner) for inner in value)
    return escape(str(value))
