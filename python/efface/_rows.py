"""What rows are called: numbers or texts, the person that each belongs to, and the names that must not come back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _input
from ._errors import BadModelError, DuplicateRowError, RefusedError, UnknownRowError

UInts = _input.UInts


@dataclass(frozen=True)
class NamedRows:
    """Rows of one call: the numbers that the native model knows them by, and what their caller calls them."""

    ids: UInts
    texts: list[str] | None
    subjects: list[str] | None


@dataclass(frozen=True)
class RowCall:
    """What a caller says of the names of rows, before their number is known."""

    row_ids: Any
    subject: Any

    @classmethod
    def of(cls, X: Any, row_ids: Any, subject: Any = None) -> RowCall:
        """Takes the index of a frame where that is asked for."""
        if isinstance(row_ids, str):
            if row_ids != "index":
                raise TypeError('row_ids is one text; give a list with a name for each row, or "index" for the index of a frame')
            row_ids = index_of(X)
        return cls(row_ids, subject)


def index_of(X: Any) -> list[Any]:
    """The index of a pandas frame."""
    index = getattr(X, "index", None)
    if index is None or callable(index):
        raise TypeError('row_ids="index" takes the index of a pandas frame, and X has none')
    return list(index)


def are_texts(row_ids: Any) -> bool:
    """Whether rows are named by texts."""
    if isinstance(row_ids, str):
        return True
    if isinstance(row_ids, (int, np.integer, range)):
        return False
    array = row_ids if isinstance(row_ids, np.ndarray) else np.asarray(row_ids, dtype=object)
    return array.dtype.kind == "U" or (array.dtype.kind == "O" and array.ndim > 0 and array.size > 0 and isinstance(array.flat[0], str))


def texts_of(row_ids: Any) -> list[str]:
    """Names as texts."""
    found = [row_ids] if isinstance(row_ids, str) else list(row_ids)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"a row id is a {type(name).__name__} among texts; name all rows by texts or all by numbers")
    return [str(name) for name in found]


def number_of(text: str) -> int:
    """The number of a text: always the same, because what models draw at random follows from it."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class ForgottenNames:
    """Names that must not come back, as keyed hashes: who has the list alone learns no name from it."""

    __slots__ = ("_hashes", "_key")

    def __init__(self, key: bytes | None = None, hashes: bytes = b"") -> None:
        self._key = secrets.token_bytes(32) if key is None else key
        if len(self._key) != 32 or len(hashes) % 16:
            raise BadModelError("the file holds a list of forgotten names that makes no sense")
        self._hashes = {hashes[at : at + 16] for at in range(0, len(hashes), 16)}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def holds(self, name: Any, kind: str = "row") -> bool:
        """Whether the row, or whatever else `kind` says, was forgotten."""
        return self._hash(name, kind) in self._hashes

    def add(self, names: Iterable[Any], kind: str = "row") -> None:
        """After these were forgotten."""
        self._hashes.update(self._hash(name, kind) for name in names)

    def drop(self, names: Iterable[Any], kind: str = "row") -> None:
        """After these came back."""
        if self._hashes:
            self._hashes.difference_update(self._hash(name, kind) for name in names)

    def check(self, names: Iterable[Any], allowed: bool) -> None:
        """Refuses rows of these names, unless they may come back."""
        if allowed or not self._hashes:
            return
        for name in names:
            if self.holds(name):
                raise RefusedError(f"row id {name!r} was forgotten; allow_forgotten=True takes it in again")

    def state(self) -> dict[str, str]:
        """The list as texts."""
        return {"key": self._key.hex(), "gone": b"".join(sorted(self._hashes)).hex()}

    def _hash(self, name: Any, kind: str) -> bytes:
        text = f"{kind}:{type(name).__name__}:{name}"
        return hashlib.blake2b(text.encode(), digest_size=16, key=self._key).digest()


class RowBook:
    """The names of a model's rows. Of those that left it keeps keyed hashes, and no name."""

    __slots__ = ("_gone", "_members", "_subjects", "next", "texts")

    def __init__(self) -> None:
        #: The first position that is free.
        self.next = 0
        #: The names of rows that have texts for names, by number; None where the numbers are the names.
        self.texts: dict[int, str] | None = None
        self._subjects: dict[int, str] = {}
        self._members: dict[str, set[int]] = {}
        self._gone = ForgottenNames()

    def plan(self, call: RowCall, rows: int) -> NamedRows:
        """The names of rows that come; nothing is entered yet."""
        subjects = None
        if call.subject is not None:
            subjects = [_subject(each) for each in call.subject]
            if len(subjects) != rows:
                raise ValueError(f"there are {len(subjects)} subjects for {rows} rows; give one for each row")
        if call.row_ids is not None and are_texts(call.row_ids):
            texts = texts_of(call.row_ids)
            if len(texts) != rows:
                raise ValueError(f"there are {len(texts)} row ids for {rows} rows; give one for each row")
            if len(set(texts)) != rows:
                seen: set[str] = set()
                twice = next(text for text in texts if text in seen or seen.add(text))  # type: ignore[func-returns-value]
                raise DuplicateRowError(f"row id {twice!r} is given twice; every row needs a name of its own")
            numbers = np.fromiter((number_of(text) for text in texts), dtype=np.uint64, count=rows)
            return NamedRows(numbers, texts, subjects)
        return NamedRows(_input.ids_for(call.row_ids, rows, self.next), None, subjects)

    def joining(self, call: RowCall, rows: int, allow_forgotten: bool) -> NamedRows:
        """The names of rows that join others."""
        if self.texts is not None and call.row_ids is None:
            raise TypeError("the rows of this model are named by texts; give row_ids")
        planned = self.plan(call, rows)
        self._check_kind(planned.texts is not None)
        for number, text in zip(planned.ids.tolist(), planned.texts or ()):
            if number in (self.texts or {}):
                raise DuplicateRowError(f"row id {text!r} is in the model already")
        self._gone.check(planned.ids.tolist() if planned.texts is None else planned.texts, allow_forgotten)
        for subject in planned.subjects or ():
            if not allow_forgotten and self._gone.holds(subject, "subject"):
                raise RefusedError(
                    f"the rows of subject {subject!r} were forgotten; allow_forgotten=True takes new ones in"
                )
        return planned

    def enter(self, rows: NamedRows) -> None:
        """After rows came."""
        if not len(rows.ids):
            return
        if rows.texts is None:
            self.next = max(self.next, int(rows.ids.max()) + 1)
            if rows.subjects is None and not self._gone:
                return
        numbers = rows.ids.tolist()
        if rows.texts is not None:
            if self.texts is None:
                self.texts = {}
            self.texts.update(zip(numbers, rows.texts))
        for number, subject in zip(numbers, rows.subjects or ()):
            self._subjects[number] = subject
            self._members.setdefault(subject, set()).add(number)
        self._gone.drop(numbers if rows.texts is None else rows.texts)
        self._gone.drop(rows.subjects or (), "subject")

    def named(self, row_ids: Any, here: Any) -> UInts:
        """The numbers of rows that are named, or chosen by a mask over the rows `here`, a function."""
        if type(row_ids) is int and self.texts is None:
            return _input.ids(row_ids)
        if are_texts(row_ids):
            self._check_kind(True)
            found = []
            for text in texts_of(row_ids):
                number = number_of(text)
                if (self.texts or {}).get(number) != text:
                    why = "it has been forgotten" if self._gone.holds(text) else "it was never there"
                    raise UnknownRowError(f"there is no row of id {text!r}: {why}")
                found.append(number)
            if len(set(found)) < len(found):
                raise DuplicateRowError("a row id is named twice; name every row once")
            return np.array(found, dtype=np.uint64)
        array = np.asarray(row_ids)
        if array.dtype == np.bool_:
            ids = here()
            if array.shape != ids.shape:
                raise ValueError(f"the mask has shape {array.shape} and the model {len(ids)} rows; give one entry for each")
            return np.asarray(ids[array])
        if array.size:
            self._check_kind(False)
        return _input.ids(row_ids if array.dtype.kind in "fO" else array)

    def members(self, subject: Any) -> UInts:
        """The rows of a person."""
        if not self._members:
            raise ValueError("the model knows no subjects; give subject= to fit, or name the rows")
        name = _subject(subject)
        if name not in self._members:
            raise UnknownRowError(f"there is no row of subject {name!r}: there never was, or they have been forgotten")
        return np.array(sorted(self._members[name]), dtype=np.uint64)

    def leave(self, ids: UInts) -> None:
        """After rows left. Who has no row left is a subject no more, and may not come back unasked either."""
        numbers = ids.tolist()
        self._gone.add(numbers if self.texts is None else [self.texts.pop(number) for number in numbers])
        for number in numbers:
            subject = self._subjects.pop(number, None)
            if subject is not None:
                members = self._members[subject]
                members.discard(number)
                if not members:
                    del self._members[subject]
                    self._gone.add([subject], "subject")

    def names(self, ids: UInts) -> Any:
        """What rows are called."""
        texts = self.texts
        return ids if texts is None else np.array([texts[number] for number in ids.tolist()], dtype=np.str_)

    def state(self, ids: UInts) -> dict[str, Any]:
        """Everything as plain arrays, in the order of the model's rows."""
        numbers = ids.tolist()
        kept: dict[str, Any] = {"next": self.next, **self._gone.state()}
        if self.texts is not None:
            kept["texts"] = self.names(ids)
        if self._subjects:
            kept["subjects"] = np.array([self._subjects.get(number, "") for number in numbers], dtype=np.str_)
            kept["has_subject"] = np.array([number in self._subjects for number in numbers], dtype=np.bool_)
        return kept

    @classmethod
    def from_state(cls, kept: dict[str, Any], ids: UInts) -> RowBook:
        """What `state` wrote, if it fits the rows of the model."""
        book = cls()
        book.next = int(kept["next"])
        book._gone = ForgottenNames(bytes.fromhex(kept["key"]), bytes.fromhex(kept["gone"]))
        numbers = ids.tolist()
        if book.next < 0:
            raise BadModelError("the file holds row names that make no sense")
        if "texts" in kept:
            texts = texts_of(np.asarray(kept["texts"]).tolist())
            if [number_of(text) for text in texts] != numbers:
                raise BadModelError("the file holds names of other rows than its model")
            book.texts = dict(zip(numbers, texts))
        if "subjects" in kept:
            subjects = texts_of(np.asarray(kept["subjects"]).tolist())
            has = np.asarray(kept["has_subject"], dtype=np.bool_).tolist()
            if len(subjects) != len(numbers) or len(has) != len(numbers):
                raise BadModelError("the file holds subjects of other rows than its model")
            for number, subject, known in zip(numbers, subjects, has):
                if known:
                    book._subjects[number] = subject
                    book._members.setdefault(subject, set()).add(number)
        return book

    def _check_kind(self, texts: bool) -> None:
        if texts and self.texts is None:
            raise TypeError("the rows of this model are named by whole numbers, and a text is none")
        if not texts and self.texts is not None:
            raise TypeError("the rows of this model are named by texts; give the names that it was fitted with")


def _subject(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, int, np.integer)):
        raise TypeError(f"a subject is a {type(value).__name__}; subjects are texts or whole numbers")
    return str(value)
