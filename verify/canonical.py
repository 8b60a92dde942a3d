"""Canonical JSON, RFC 8785: writing it, and reading nothing else."""

import re

from limits import EXACT, MAX_DEPTH, MAX_VALUES, Refused


def number_text(value):
    """A number as ECMAScript writes it. Python's repr gives the same digits in another layout."""
    if isinstance(value, int):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise Refused("canonical", "not a finite number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" and not exponent else fraction
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    point = len(whole) - leading + int(exponent or 0)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    tail = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def string_text(value):
    return '"' + "".join(ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'


def utf16(text):
    return text.encode("utf-16-be")


def canonical_text(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical_text, value)) + "]"
    members = sorted(value.items(), key=lambda member: utf16(member[0]))
    return "{" + ",".join(string_text(key) + ":" + canonical_text(member) for key, member in members) + "}"


def canonical(value):
    return canonical_text(value).encode()


NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-][0-9]+)?")
PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
ESCAPE = re.compile(r'\\(?:["\\btnfr]|u00[01][0-9a-f])')
BACK = {escape: char for char, escape in ESCAPES.items()}


class Parser:
    """Reads nothing but the canonical form."""

    def __init__(self, text):
        self.text, self.at, self.values = text, 0, 0

    def wrong(self, why):
        raise Refused("canonical", f"{why} at character {self.at}")

    def take(self, token):
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def value(self, depth):
        if depth > MAX_DEPTH:
            raise Refused("limits", "nested too deep")
        self.values += 1
        if self.values > MAX_VALUES:
            raise Refused("limits", "too many values")
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self.take(word):
                return value
        if self.text.startswith('"', self.at):
            return self.string()
        if self.take("["):
            return self.items(depth)
        if self.take("{"):
            return self.members(depth)
        return self.number()

    def items(self, depth):
        found = []
        if self.take("]"):
            return found
        while True:
            found.append(self.value(depth + 1))
            if self.take("]"):
                return found
            if not self.take(","):
                self.wrong("no comma")

    def members(self, depth):
        found, last = {}, None
        if self.take("}"):
            return found
        while True:
            key = self.string()
            if last is not None and utf16(key) <= utf16(last):
                self.wrong("keys repeat or are out of order")
            if not self.take(":"):
                self.wrong("no colon")
            found[key] = self.value(depth + 1)
            last = key
            if self.take("}"):
                return found
            if not self.take(","):
                self.wrong("no comma")

    def string(self):
        if not self.take('"'):
            self.wrong("no string")
        parts = []
        while True:
            plain = PLAIN.match(self.text, self.at)
            parts.append(plain.group())
            self.at = plain.end()
            if self.take('"'):
                return "".join(parts)
            escape = ESCAPE.match(self.text, self.at)
            if not escape:
                self.wrong("a control character or an escape that the canonical form does not use")
            char = BACK.get(escape.group()) or chr(int(escape.group()[2:], 16))
            if string_text(char) != f'"{escape.group()}"':
                self.wrong("an escape that has a shorter form")
            parts.append(char)
            self.at = escape.end()

    def number(self):
        token = NUMBER.match(self.text, self.at)
        if not token or len(token.group()) > 32:
            self.wrong("no value")
        text = token.group()
        plain = text.lstrip("-").isdigit()
        value = int(text) if plain and abs(int(text)) <= EXACT else float(text)
        if number_text(value) != text or text == "-0":
            self.wrong("a number that is not written as ECMAScript writes doubles")
        self.at = token.end()
        return value


def parse(data, limit):
    if len(data) > limit:
        raise Refused("limits", f"{len(data)} bytes, more than {limit}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refused("canonical", "not UTF-8") from error
    parser = Parser(text)
    value = parser.value(0)
    if parser.at != len(text):
        parser.wrong("something follows the document")
    return value
