#!/usr/bin/env python3
"""A second verifier for efface's receipts.

It shares no code with efface: canonical JSON, CBOR, Merkle trees, checkpoints and the rules of docs/receipt.md are written
again in this folder, with the standard library; only the Ed25519 check comes from the `cryptography` package. Where the two
verifiers disagree, one of them is wrong, and that is the point of having two.

    verify.py bundle KEYS receipt.cose
    verify.py witnessed KEYS receipt.cose WITNESSES [QUORUM]
    verify.py pack KEYS pack.zip
    verify.py log KEYS log.txt checkpoint.txt
    verify.py succession KEYS old.txt new.txt proof.json

KEYS is a file with the public keys, as `efface keys` prints them: `name+id+base64`, one a line, oldest first, those that
handed over followed by ` until N`. Exit status: 0 verified, 1 refused, 2 wrong usage.
"""

import sys

import cose
import stamp
from canonical import canonical, parse
from keys import Keys, check_name, count, unbase64, verify_checkpoint, verify_witnesses
from limits import MAX_BUNDLE, MAX_NOTE, MAX_PACK, MAX_RECEIPT, MAX_ROTATIONS, Refused
from merkle import Edge, verify_consistency, verify_inclusion
from pack import verify_pack
from rules import check_rules
from shape import CONSISTENCY, RECEIPT


class Signed:
    """A receipt and its signature, from the COSE_Sign1 that holds both."""

    def __init__(self, message):
        if not isinstance(message.payload, bytes):
            raise Refused("encoding", "no payload")
        self.payload, self.signature = message.payload, message.signature
        self.receipt = parse(message.payload, MAX_RECEIPT)
        RECEIPT(self.receipt)

    def encoded(self, unprotected=None):
        """The bytes of the COSE_Sign1. Without an unprotected header they are the leaf of the log."""
        return cose.sign1(cose.statement_header(self.receipt), unprotected or {}, self.payload, self.signature)

    def check(self):
        check_name(self.receipt["origin"])
        check_rules(self.receipt)

    def verify_by(self, key):
        if not key.holds(self.signature, cose.to_be_signed(cose.statement_header(self.receipt), self.payload)):
            raise Refused("signature", "the signature of the receipt is wrong")

    def verify(self, keys):
        self.check()
        receipt = self.receipt
        key = keys.active(receipt["origin"], receipt["key_id"], receipt["sequence"])
        self.verify_by(key)
        return key


def read_signed(leaf):
    """A receipt of a log, by itself."""
    if len(leaf) > MAX_RECEIPT + 1024:
        raise Refused("limits", "the receipt is too long")
    signed = Signed(cose.Message(leaf))
    if signed.encoded() != leaf:
        raise Refused("encoding", "not written in the one way of a signed receipt")
    return signed


def named_keys(signed):
    signed.check()
    if signed.receipt["keys"] is None:
        raise Refused("schema", "this receipt names no keys")
    return signed.receipt["keys"]


def follow(keys, signed):
    """Goes forward: trusts the key that a hand-over names, if a trusted key or the recovery key signed it."""
    named, sequence = named_keys(signed), signed.receipt["sequence"]
    if keys.get(named["by"]) or keys.recovery != named["by"]:
        signed.verify(keys)
    else:
        keys.add(named["by"], sequence, sequence)
        signed.verify_by(keys.get(named["by"]))
    keys.recovery = named["recovery"]
    if named["retired"] is None:
        return
    old, following = keys.get(named["retired"]), keys.get(named["next"])
    if old is None:
        raise Refused("key", "the key that retires is not trusted")
    if old.last is not None and (following is None or old.last != sequence):
        raise Refused("key", "a key hands over once")
    old.last = sequence
    if following:
        following.first = max(following.first, sequence + 1)
    else:
        keys.add(named["next"], sequence + 1, None)


def recall(keys, signed):
    """Goes back: trusts the key that a hand-over retired, because a log that a trusted key signs contains it."""
    named, sequence = named_keys(signed), signed.receipt["sequence"]
    known = Keys(named["by"])
    signed.verify_by(known.keys[0])
    if named["retired"] is None:
        return
    following, old = keys.get(named["next"]), keys.get(named["retired"])
    if following is None:
        raise Refused("key", "the hand-over leads to a key that is not trusted")
    following.first = max(following.first, sequence + 1)
    if named["by"] != named["retired"]:
        keys.add(named["by"], sequence, sequence)
    if old is None:
        keys.add(named["retired"], 0, sequence)
    elif old.last != sequence:
        raise Refused("key", "a key hands over once")


def hashes(texts):
    return [bytes.fromhex(text) for text in texts]


class Bundle:
    """A receipt with all that is needed to check it."""

    def __init__(self, data):
        if len(data) > MAX_BUNDLE:
            raise Refused("limits", f"{len(data)} bytes, more than {MAX_BUNDLE}")
        message = cose.Message(data)
        self.signed, head = Signed(message), cose.attached_receipt(message)
        self.checkpoint = message.unprotected.get("checkpoint")
        if not isinstance(self.checkpoint, str):
            raise Refused("encoding", "no checkpoint")
        self.key_id, self.signature = head.key_id(), head.signature
        self.inclusion, self.consistency, self.keys = head.proof(cose.INCLUSION), None, []
        if isinstance(message.unprotected.get("consistency"), bytes):
            self.consistency = cose.Message(message.unprotected["consistency"]).proof(cose.CONSISTENCY)
        self.stamp = message.unprotected.get(cose.STAMP)
        if not isinstance(self.stamp, bytes):
            self.stamp = None
        links = message.unprotected.get("keys")
        for link in links if isinstance(links, list) else []:
            if not isinstance(link, bytes):
                raise Refused("encoding", "the list of keys holds no bytes")
            link = cose.Message(link)
            self.keys.append((Signed(link), cose.attached_receipt(link).proof(cose.INCLUSION)))
        if self.encoded() != data:
            raise Refused("encoding", "not written in the one way of a receipt with its proofs")

    def attached(self, kind, proof):
        return cose.receipt_bytes(self.signed.receipt["origin"], self.key_id, self.signature, kind, *proof)

    def encoded(self):
        """The bytes of the file, from what was read of it."""
        headers = {cose.RECEIPTS: [self.attached(cose.INCLUSION, self.inclusion)]}
        if self.stamp is not None:
            headers[cose.STAMP] = self.stamp
        if self.keys:
            headers["keys"] = [
                signed.encoded({cose.RECEIPTS: [self.attached(cose.INCLUSION, proof)]}) for signed, proof in self.keys
            ]
        headers["checkpoint"] = self.checkpoint
        if self.consistency:
            headers["consistency"] = self.attached(cose.CONSISTENCY, self.consistency)
        return self.signed.encoded(headers)


def check_place(signed, proof, origin, size, root):
    """A receipt is in the log that a checkpoint signs, at the place that it states."""
    receipt, (proof_size, index, path) = signed.receipt, proof
    if receipt["origin"] != origin:
        raise Refused("origin", "receipt and checkpoint belong to different logs")
    if index != receipt["sequence"] or proof_size != size:
        raise Refused("inclusion", "the proof is for another place or another log")
    verify_inclusion(signed.encoded(), index, size, path, root)


def verify_bundle(data, key_text):
    """Verifies the bytes of a receipt with its proofs, against a list of keys; gives the receipt."""
    bundle, keys = Bundle(data), Keys(key_text)
    if len(bundle.keys) > MAX_ROTATIONS:
        raise Refused("limits", "too many keys")
    places = [signed.receipt["sequence"] for signed, _ in bundle.keys]
    if any(first >= second for first, second in zip(places, places[1:])):
        raise Refused("schema", "hand-overs are listed oldest first, each once")
    earlier = []
    for signed, _ in bundle.keys:
        by = (signed.receipt["keys"] or {"by": None})["by"]
        if by is not None and (keys.get(by) or keys.recovery == by):
            follow(keys, signed)
        else:
            earlier.append(signed)
    origin, size, root = verify_checkpoint(bundle.checkpoint, keys)
    key = keys.active(origin, bundle.key_id, size)
    if not key.holds(bundle.signature, cose.to_be_signed(cose.head_header(origin, bundle.key_id), root)):
        raise Refused("checkpoint", "the COSE signature of the head is wrong")
    for signed, proof in bundle.keys:
        check_place(signed, proof, origin, size, root)
    for signed in reversed(earlier):
        recall(keys, signed)
    bundle.signed.verify(keys)
    check_place(bundle.signed, bundle.inclusion, origin, size, root)
    proof, previous = bundle.consistency, bundle.signed.receipt["previous"]
    if (proof is None) != (previous is None):
        raise Refused("consistency", "every receipt but the first has a proof from the head that it names")
    if proof is not None:
        if proof[:2] != (previous["size"], size):
            raise Refused("consistency", "the proof is not from the head that the receipt names")
        verify_consistency(previous["size"], size, proof[2], bytes.fromhex(previous["root"]), root)
    if bundle.stamp is not None:
        stamp.check(bundle.stamp, bundle.signed.signature)
    return bundle.signed.receipt


def verify_with_head(data, key_text):
    """Verifies a receipt with its proofs; gives it and the checkpoint that it is proved against."""
    return verify_bundle(data, key_text), Bundle(data).checkpoint


# What verifying a pack leaves open: all of it was signed by the log's key, and no more than that is known of it.
NOT_CHECKED = (
    "that the page, the tables, the exports and receipts/*.json say what receipts/*.cose say",
    "the keys in keys.txt: those that were given are trusted",
    "witnesses of the log, and the signatures of authorities under time stamps",
    "the model: whether it is in the state that the receipts name",
)


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


class Trust:
    """The keys that the reader trusts, and whether one of them signed something of the log."""

    def __init__(self, key_text):
        self.keys, self.vouched = Keys(key_text), False

    def see(self, signer, sequence):
        if self.keys.get(signer.text):
            self.keys.active(signer.name, signer.id, sequence)
            self.vouched = True


def verify_log(leaves, note, key_text):
    """Verifies a whole log, from its first receipt to a checkpoint; gives the number of receipts."""
    keys, edge, origin, last, waiting = Keys(), Edge(), None, None, None
    group, trust = Group(None), Trust(key_text)
    for leaf in leaves:
        signed = read_signed(leaf)
        receipt = signed.receipt
        signed.check()
        if edge.size == 0 and receipt["keys"] is not None:
            # The first receipt says by which key it is signed. Whether to trust that key, the reader's keys decide.
            keys = Keys(receipt["keys"]["by"])
        if receipt["kind"] == "key_rotation" and receipt["outcome"] == "done":
            follow(keys, signed)
        trust.see(signed.verify(keys), receipt["sequence"])
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
        if receipt["kind"] == "fit":
            follow(keys, signed)
        edge.append(leaf)
    group.finish()
    signed_origin, size, root = verify_checkpoint(note, keys)
    for key in [key for key in keys.keys if key.last is None]:
        trust.see(key, size)
    if not trust.vouched:
        raise Refused("key", "no trusted key has signed anything of this log")
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


def log_leaves(path):
    """The receipts of a log, one a line in base64."""
    with open(path, "rb") as file:
        while line := file.readline(2 * MAX_RECEIPT):
            yield unbase64(line.removesuffix(b"\n").decode("latin-1"), "encoding")


def main(arguments):
    try:
        match arguments:
            case ["bundle", key, path]:
                receipt = verify_bundle(read(path, MAX_BUNDLE), read_text(key, MAX_NOTE))
                rows = receipt["rows"]["removed"]
                print(f"verified: {receipt['kind']} {receipt['outcome']}, {rows} rows removed, receipt {receipt['id']}")
            case ["witnessed", key, path, witnesses, *quorum] if len(quorum) < 2 and None not in map(count, quorum):
                # A receipt, and enough witnesses of the head of its log.
                data = read(path, MAX_BUNDLE)
                receipt = verify_bundle(data, read_text(key, MAX_NOTE))
                needed = count(quorum[0]) if quorum else None
                signed = verify_witnesses(Bundle(data).checkpoint, read_text(witnesses, MAX_NOTE), needed)
                print(f"verified: receipt {receipt['id']}, witnessed by {', '.join(sorted(signed))}")
            case ["pack", key, path]:
                files, receipts = verify_pack(read(path, MAX_PACK), read_text(key, MAX_NOTE), verify_with_head)
                print(f"verified: {len(files)} files, {len(receipts)} receipts, as the key of the log signed them")
                for line in NOT_CHECKED:
                    print(f"not checked: {line}")
            case ["log", key, path, note]:
                size = verify_log(log_leaves(path), read_text(note, MAX_NOTE), read_text(key, MAX_NOTE))
                print(f"verified: {size} receipts")
            case ["succession", key, old, new, proof]:
                verify_succession(
                    read_text(old, MAX_NOTE), read_text(new, MAX_NOTE), parse(read(proof, MAX_BUNDLE), MAX_BUNDLE),
                    Keys(read_text(key, MAX_NOTE)),
                )  # fmt: skip
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
