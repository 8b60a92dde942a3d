"""The trees: the log of receipts (RFC 6962), the training set, and salted commitments."""

import hashlib
import hmac

from limits import EXACT, Refused


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf_hash(leaf):
    return sha256(b"\0", leaf)


def node_hash(left, right):
    return sha256(b"\1", left, right)


def split_point(size):
    """The largest power of two below a size of at least 2."""
    return 1 << (size - 1).bit_length() - 1


def root_from_path(index, size, leaf, path):
    """Follows RFC 6962 §2.1.1 from the top down; None when the path has another length."""
    if size == 1:
        return leaf if not path else None
    if not path:
        return None
    cut = split_point(size)
    if index < cut:
        left = root_from_path(index, cut, leaf, path[:-1])
        return left and node_hash(left, path[-1])
    right = root_from_path(index - cut, size - cut, leaf, path[:-1])
    return right and node_hash(path[-1], right)


def verify_inclusion(leaf, index, size, path, root):
    if not 0 <= index < size <= EXACT or root_from_path(index, size, leaf_hash(leaf), path) != root:
        raise Refused("inclusion", "the receipt is not in the log that the checkpoint signs")


def roots_from_proof(old, new, path, known):
    """Follows RFC 6962 §2.1.2: the old and new root that a proof leads to. `known` is the old root while the old tree is
    still a whole subtree, None once it is not."""
    if old == new:
        if known is not None:
            return (known, known) if not path else None
        return (path[0], path[0]) if len(path) == 1 else None
    if not path:
        return None
    cut = split_point(new)
    if old <= cut:
        below = roots_from_proof(old, cut, path[:-1], known)
        return below and (below[0], node_hash(below[1], path[-1]))
    below = roots_from_proof(old - cut, new - cut, path[:-1], None)
    return below and (node_hash(path[-1], below[0]), node_hash(path[-1], below[1]))


def verify_consistency(old, new, path, old_root, new_root):
    if old == 0 and new <= EXACT:
        good = not path and old_root == sha256()
    else:
        good = 0 < old <= new <= EXACT and roots_from_proof(old, new, path, old_root) == (old_root, new_root)
    if not good:
        raise Refused("consistency", f"the log of {new} receipts does not continue the log of {old}")


class Edge:
    """The right edge of a growing log."""

    def __init__(self):
        self.size, self.peaks = 0, []

    def append(self, leaf):
        self.peaks.append((1, leaf_hash(leaf)))
        while len(self.peaks) > 1 and self.peaks[-1][0] == self.peaks[-2][0]:
            (width, right), (_, left) = self.peaks.pop(), self.peaks.pop()
            self.peaks.append((2 * width, node_hash(left, right)))
        self.size += 1

    def root(self):
        if not self.peaks:
            return sha256()
        found = self.peaks[-1][1]
        for _, left in reversed(self.peaks[:-1]):
            found = node_hash(left, found)
        return found


# The training set.


def key_bit(key, depth):
    return key[depth // 8] >> (7 - depth % 8) & 1


def set_hash(keys, depth=0):
    if not keys:
        return bytes(32)
    if len(keys) == 1:
        return sha256(b"\0", keys[0])
    sides = [[key for key in keys if key_bit(key, depth) == side] for side in (0, 1)]
    return node_hash(set_hash(sides[0], depth + 1), set_hash(sides[1], depth + 1))


def set_root(keys):
    """The root of a training set, from the commitments of its rows in any order."""
    return seal(set_hash(sorted(set(keys))), len(set(keys)))


def seal(top, count):
    return sha256(b"\2", count.to_bytes(8, "big"), top)


def is_member(root, count, key, path, end):
    """Whether a row is in a training set; refuses a proof that does not lead to its root."""
    depth = len(path)
    if depth > 256 or (end is not None and any(key_bit(end, d) != key_bit(key, d) for d in range(depth))):
        raise Refused("training_set", "the proof takes another way than the key")
    found = bytes(32) if end is None else sha256(b"\0", end)
    for d in reversed(range(depth)):
        found = node_hash(path[d], found) if key_bit(key, d) else node_hash(found, path[d])
    if seal(found, count) != root:
        raise Refused("training_set", "the proof does not lead to the root")
    return end == key


def nonce(salt, label, value):
    return hmac.new(salt, label + b"\0" + value, "sha256").digest()


def commitment(nonce_bytes, label, value):
    return sha256(b"efface commitment v1\0", label, b"\0", nonce_bytes, value)


def rows_commitment(rows):
    return sha256(b"efface rows v1\0", len(rows).to_bytes(8, "big"), *sorted(rows))
