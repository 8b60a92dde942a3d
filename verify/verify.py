#!/usr/bin/env python3
"""A second verifier for efface's receipts.

It shares no code with efface: canonical JSON, Merkle trees, checkpoints and the rules of docs/receipt.md are written
again in this folder, with the standard library; only the Ed25519 check comes from the `cryptography` package. Where the two
verifiers disagree, one of them is wrong, and that is the point of having two.

    verify.py bundle KEY receipt.json
    verify.py log KEY log.jsonl checkpoint.txt
    verify.py succession KEY old.txt new.txt proof.json [rotation.json ...]

KEY is a file with the public key, `name+id+base64`. Exit status: 0 verified, 1 refused, 2 wrong usage.
"""

import base64
import sys

from canonical import canonical, parse
from keys import Key, Keys, check_name, verify_checkpoint
from limits import MAX_BUNDLE, MAX_NOTE, MAX_RECEIPT, MAX_ROTATIONS, Refused
from merkle import Edge, verify_consistency, verify_inclusion
from rules import check_rules
from shape import BUNDLE, CONSISTENCY, SIGNED


def verify_signed(signed, keys):
    receipt = signed["receipt"]
    check_name(receipt["origin"])
    check_rules(receipt)
    key = keys.active(receipt["origin"], receipt["key_id"], receipt["sequence"])
    if not key.holds(base64.b64decode(signed["signature"]), b"efface receipt v1\0" + canonical(receipt)):
        raise Refused("signature", "the signature of the receipt is wrong")


def read_signed(line, keys):
    """A receipt of a log, by itself."""
    signed = parse(line, MAX_RECEIPT)
    SIGNED(signed)
    verify_signed(signed, keys)
    return signed


def follow(keys, signed):
    """Trusts the key that a rotation names, and retires the one that signed it."""
    verify_signed(signed, keys)
    receipt = signed["receipt"]
    if receipt["kind"] != "key_rotation" or receipt["outcome"] != "done":
        raise Refused("schema", "not a key rotation that was done")
    if len(keys.keys) > MAX_ROTATIONS:
        raise Refused("limits", "too many keys")
    following, signer = Key(receipt["next_key"]), keys.find(receipt["origin"], receipt["key_id"])
    known = keys.find(following.name, following.id)
    if signer.retired is not None and (not known or signer.retired != receipt["sequence"]):
        raise Refused("key", "a key hands over once")
    signer.retired = receipt["sequence"]
    if not known:
        keys.keys.append(following)


def hashes(texts):
    return [bytes.fromhex(text) for text in texts]


def verify_bundle(data, *key_texts):
    """Verifies the bytes of a bundle; gives the receipt."""
    bundle = parse(data, MAX_BUNDLE)
    BUNDLE(bundle)
    if len(bundle["rotations"]) > MAX_ROTATIONS:
        raise Refused("limits", "too many rotations")
    places = [rotation["receipt"]["sequence"] for rotation in bundle["rotations"]]
    if any(first >= second for first, second in zip(places, places[1:])):
        raise Refused("schema", "rotations are listed oldest first, each once")
    keys = Keys(*key_texts)
    for rotation in bundle["rotations"]:
        follow(keys, rotation)
    verify_signed(bundle["signed"], keys)
    receipt = bundle["signed"]["receipt"]
    origin, size, root = verify_checkpoint(bundle["checkpoint"], keys)
    if receipt["origin"] != origin:
        raise Refused("origin", "receipt and checkpoint belong to different logs")
    proof = bundle["inclusion"]
    if proof["index"] != receipt["sequence"] or proof["size"] != size:
        raise Refused("inclusion", "the proof is for another place or another log")
    leaf = canonical(bundle["signed"])
    if len(leaf) > MAX_RECEIPT:
        raise Refused("limits", "the receipt is too long")
    verify_inclusion(leaf, proof["index"], size, hashes(proof["path"]), root)
    proof, previous = bundle["consistency"], receipt["previous"]
    if (proof is None) != (previous is None):
        raise Refused("consistency", "every receipt but the first has a proof from the head that it names")
    if proof is not None:
        if (proof["old"], proof["new"]) != (previous["size"], size):
            raise Refused("consistency", "the proof is not from the head that the receipt names")
        path = hashes(proof["path"])
        verify_consistency(previous["size"], size, path, bytes.fromhex(previous["root"]), root)
    return receipt


def scrub(receipt, waiting):
    """The run of receipts whose rows wait to be scrubbed, after this one. A settle scrubs all that wait."""
    settle = receipt["kind"] == "settle" and receipt["outcome"] == "done"
    if settle or receipt["settles"] is not None:
        if receipt["settles"] != waiting:
            raise Refused("chain", f"receipt {receipt['sequence']} settles others than those that wait")
        waiting = None
    times, sequence = receipt["times"], receipt["sequence"]
    if times["forgotten_at"] is not None and times["scrubbed_at"] is None:
        waiting = {"first": waiting["first"] if waiting else sequence, "last": sequence}
    return waiting


class Group:
    """Receipts that were written together: one change of the model, one head before them."""

    def __init__(self, previous):
        self.previous, self.sizes, self.gain = previous, None, 0

    def count(self, receipt):
        rows, states = receipt["rows"], receipt["training_set"]
        self.gain += rows["added"] - rows["removed"]
        if rows["added"] or rows["removed"]:
            self.sizes = (states["before"]["count"] if states["before"] else 0, states["after"]["count"])

    def finish(self):
        if self.sizes and self.sizes[0] + self.gain != self.sizes[1]:
            raise Refused("chain", "receipts that were written together do not account for every row")


def verify_log(lines, note, *key_texts):
    """Verifies a whole log, from its first receipt to a checkpoint; gives the number of receipts."""
    keys, edge, origin, last, waiting = Keys(*key_texts), Edge(), None, None, None
    group = Group(None)
    for line in lines:
        signed = read_signed(line, keys)
        receipt = signed["receipt"]
        if receipt["sequence"] != edge.size:
            raise Refused("inclusion", f"receipt {receipt['sequence']} stands at {edge.size}")
        if origin not in (None, receipt["origin"]):
            raise Refused("origin", "a receipt of another log")
        origin, previous = receipt["origin"], receipt["previous"]
        # A receipt continues the group that is being read, or begins one on the head of all receipts before it.
        if previous is not None and previous != group.previous:
            group.finish()
            if previous != {"size": edge.size, "root": edge.root().hex()}:
                raise Refused("consistency", "a receipt was written on top of another log")
            group = Group(previous)
        group.count(receipt)
        for what in ("training_set", "parameters"):
            change = receipt[what]
            if last is None:
                meets = change["before"] is None
            else:
                together = change == last[what] and change["before"] is not None
                meets = change["before"] == last[what]["after"] or together
            if not meets:
                raise Refused("chain", f"receipt {edge.size} does not start where the one before it ended: {what}")
        if last is not None and receipt["times"]["received_at"] < last["times"]["received_at"]:
            raise Refused("chain", f"receipt {edge.size} is older than the one before it")
        last = receipt
        waiting = scrub(receipt, waiting)
        if receipt["kind"] == "key_rotation" and receipt["outcome"] == "done":
            follow(keys, signed)
        edge.append(line)
    group.finish()
    signed_origin, size, root = verify_checkpoint(note, keys)
    if origin not in (None, signed_origin):
        raise Refused("origin", "log and checkpoint belong to different logs")
    if size != edge.size:
        raise Refused("inclusion", f"the checkpoint has {size} receipts, the log {edge.size}")
    if root != edge.root():
        raise Refused("fork", "the checkpoint signs another log of this size")
    return size


def verify_succession(old_note, new_note, proof, keys):
    """Verifies that the log of one checkpoint continues that of another."""
    CONSISTENCY(proof)
    old_origin, old, old_root = verify_checkpoint(old_note, keys)
    new_origin, new, new_root = verify_checkpoint(new_note, keys)
    if old_origin != new_origin:
        raise Refused("origin", "checkpoints of different logs")
    if new < old:
        raise Refused("consistency", f"the log shrank from {old} to {new}")
    if new == old and new_root != old_root:
        raise Refused("fork", "two logs of one size: keep both checkpoints, they are proof")
    if (proof["old"], proof["new"]) != (old, new):
        raise Refused("consistency", "the proof is for other sizes")
    verify_consistency(old, new, hashes(proof["path"]), old_root, new_root)


def read(path, limit):
    """One byte more than the limit is enough to know that a file is too long."""
    with open(path, "rb") as file:
        return file.read(limit + 1)


def read_text(path, limit):
    try:
        return read(path, limit).decode()
    except UnicodeDecodeError as error:
        raise Refused("checkpoint", f"{path} is not text") from error


def log_lines(path):
    with open(path, "rb") as file:
        while line := file.readline(MAX_RECEIPT + 2):
            yield line.removesuffix(b"\n")


def main(arguments):
    try:
        match arguments:
            case ["bundle", key, path]:
                receipt = verify_bundle(read(path, MAX_BUNDLE), read_text(key, 400).strip())
                rows = receipt["rows"]["removed"]
                print(f"verified: {receipt['kind']} {receipt['outcome']}, {rows} rows removed, receipt {receipt['id']}")
            case ["log", key, path, note]:
                size = verify_log(log_lines(path), read_text(note, MAX_NOTE), read_text(key, 400).strip())
                print(f"verified: {size} receipts")
            case ["succession", key, old, new, proof, *rotations]:
                keys = Keys(read_text(key, 400).strip())
                for path in rotations:
                    signed = parse(read(path, MAX_RECEIPT), MAX_RECEIPT)
                    SIGNED(signed)
                    follow(keys, signed)
                verify_succession(
                    read_text(old, MAX_NOTE), read_text(new, MAX_NOTE), parse(read(proof, MAX_BUNDLE), MAX_BUNDLE), keys
                )
                print("verified: the newer log continues the older one")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except Refused as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
