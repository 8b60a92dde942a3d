"""How much is read before giving up, and how a refusal is told."""

MAX_RECEIPT = 256 * 1024
MAX_BUNDLE = 1024 * 1024
MAX_STAMP = 65536
MAX_NOTE = 128 * 1024
MAX_PACK = 512 * 1024 * 1024
MAX_PACK_LIST = 16 * 1024 * 1024
MAX_DEPTH = 24
MAX_VALUES = 65_536
MAX_LIST = 1024
MAX_SIGNATURES = 32
MAX_ROTATIONS = 64
# Lists of keys: the key that signs now, the keys before it, and a recovery key for each hand-over.
MAX_KEYS = 2 * MAX_ROTATIONS + 1
MAX_KEY_LIST = 65536
# The largest integer: from 2**53 on a double stands for more than one.
EXACT = 2**53 - 1


class Refused(Exception):
    """A check failed. `check` is one word that both verifiers use."""

    def __init__(self, check, why):
        super().__init__(f"{check}: {why}")
        self.check = check
