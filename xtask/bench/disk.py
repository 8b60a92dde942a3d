"""`efface forget` as a command, from start to exit, with everything durable: where the time goes.

    disk.py EFFACE [--json] [--wide]

The columns of a line: the time of day of the command, median of five; of it processor time in the program and in the system,
and the rest, which is waiting, mostly for the disk; beside them the start of the program alone, and writing and syncing as many
bytes as the command wrote. With `--wide`, a factor of 10,000 columns too, whose files take two gigabytes.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EFFACE = sys.argv[1]
REQUESTS = 5


def command(*args):
    """Seconds of the day, of the program and of the system, and blocks of 512 bytes written."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([EFFACE, *map(str, args)], capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"efface {' '.join(map(str, args))}: {done.stderr}")
    return wall, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, after.ru_oublock - before.ru_oublock


def write_and_sync(path, count):
    start = time.perf_counter()
    with open(path, "wb") as file:
        file.write(b"\0" * count)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - start


def write_table(path, rows, width, entries, classes):
    """Lines of svmlight: as many numbers a row, at places that a multiplicative generator picks. Where there are classes, a row's is the one
    whose share of the numbers is largest, up to noise as large as the numbers."""
    state = 12345
    with open(path, "w") as file:
        for row in range(rows):
            parts = []
            shares = [0.0] * classes
            step = max(1, width // entries)
            for at in range(entries):
                state = (state * 1103515245 + 12345) % 2**31
                column = at * step + state % step
                # The low digits of such a generator repeat.
                value = (state >> 12) % 1000 / 500 - 1
                parts.append(f"{column + 1}:{value:.3f}")
                if classes:
                    shares[at % classes] += value
            for c in range(classes):
                state = (state * 1103515245 + 12345) % 2**31
                shares[c] += ((state >> 12) % 1000 / 250 - 2) * (entries / classes) ** 0.5
            label = shares.index(max(shares)) if classes else row % 7
            file.write(" ".join([str(label), *parts]) + "\n")


def measure(name, rows, width, entries, *options, classes=0):
    if classes:
        options = ("--model", "softmax", *options)
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "rows.svm", Path(folder) / "model.efface"
        write_table(data, rows, width, entries, classes)
        fit = command("fit", data, "-o", model, "--quiet", *options)
        requests = [command("forget", model, "--ids", 3 * at + 1, "--quiet") for at in range(REQUESTS)]
        wall, program, system, blocks = (statistics.median(column) for column in zip(*requests))
        start = statistics.median(command("--version")[0] for _ in range(REQUESTS))
        written = int(blocks) * 512
        disk = write_and_sync(Path(folder) / "probe", written)
        fields = {
            "what": "disk", "table": name, "fit": fit[0], "fit_processor": fit[1] + fit[2], "forget": wall, "program": program,
            "system": system, "waiting": max(0.0, wall - program - system), "start": start, "written": written,
            "same_bytes_synced": disk, "file": model.stat().st_size,
        }
    if "--json" in sys.argv:
        print(json.dumps(fields), flush=True)
        return
    times = [f"{fields[key] * 1e3:.0f} ms" for key in ("forget", "program", "system", "waiting", "start", "same_bytes_synced")]
    print(f"| {name} | {fit[0]:.2f} s | {' | '.join(times)} | {written / 1e6:.1f} | {fields['file'] / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    if "--json" not in sys.argv:
        print("| table | fit | forget | of it program | system | waiting | start alone | as many bytes synced | MB written | MB of the file |")
        print("|" + "---|" * 10)
    measure("2,000 × 100, dense", 2_000, 100, 100)
    measure("4,000 × 1,000, dense", 4_000, 1_000, 1_000)
    measure("7,770 × 8,315, 44 a row", 7_770, 8_315, 44)
    measure("10,000 × 10,000, 60 a row", 10_000, 10_000, 60)
    measure("20,000 × 100,000, 60 a row", 20_000, 100_000, 60)
    measure("20,000 × 200, dense, 20 classes", 20_000, 200, 200, classes=20)
    measure("20,000 × 200, dense, 5 classes", 20_000, 200, 200, classes=5)
    measure("6,500 × 1,500, 60 a row, 52 classes", 6_500, 1_500, 60, classes=52)
    if "--wide" in sys.argv:
        measure("10,000 × 10,000, 60 a row, kept factor", 10_000, 10_000, 60, "--curvature", "factor")
