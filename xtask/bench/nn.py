"""PyTorch and sentence-transformers on the shapes of `crates/efface-nn/benches/nn`: the other half of `cargo xtask bench nn`.

    nn.py step SHAPE THREADS        one training step of bilstm or stacked
    nn.py minilm DATA ENCODER       texts a second of sentence-transformers, one thread and two

One JSON line a measurement. Each step runs in a process of its own, so that its peak memory is its own.
"""

import csv
import json
import resource
import sys
import time


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def step(shape, threads):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    length, batch, classes, steps = 100, 64, 5, 40
    both = shape == "bilstm"
    hidden, layers = (128, 1) if both else (64, 6)

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(2001, 100)
            self.words.weight.requires_grad = False
            self.lstm = torch.nn.LSTM(100, hidden, layers, bidirectional=both)
            self.out = torch.nn.Linear(hidden * (2 if both else 1), classes)

        def forward(self, ids):
            states, (last, _) = self.lstm(self.words(ids))
            return self.out(torch.cat([last[0], last[1]], 1) if both else states[-1])

    network = Network()
    trained = [p for p in network.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=2e-3)
    ids = torch.tensor([[(i * 131 + t * 17) % 2000 + 1 for i in range(batch)] for t in range(length)])
    targets = torch.arange(batch) % classes
    times, busy = [], []
    for _ in range(steps):
        start, processor = time.perf_counter(), time.process_time()
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(ids), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        times.append((time.perf_counter() - start) * 1e3)
        busy.append((time.process_time() - processor) * 1e3)
    times, busy = sorted(times[1:]), busy[1:]
    print(json.dumps({
        "shape": shape, "threads": threads, "median": times[len(times) // 2], "fastest": times[0],
        "processor": sum(busy) / len(busy), "megabytes": megabytes(), "version": torch.__version__,
    }))


def texts(data, name):
    path = {"AG News": "agnews/ag-news-test-7600.csv", "BBC news": "bbc/bbc-text.csv"}[name]
    with open(f"{data}/{path}", newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows)
        return [" ".join(row[1:]) for _, row in zip(range(400), rows)]


def minilm(data, folder):
    import sentence_transformers
    import torch
    from sentence_transformers import SentenceTransformer

    for threads in (1, 2):
        torch.set_num_threads(threads)
        model = SentenceTransformer(folder, device="cpu")
        model.max_seq_length = 256
        for name in ("AG News", "BBC news"):
            sample = texts(data, name)
            model.encode(sample[:20])
            start, processor = time.perf_counter(), time.process_time()
            model.encode(sample, batch_size=32, show_progress_bar=False)
            print(json.dumps({
                "what": "speed", "data": name, "threads": threads, "texts": len(sample),
                "seconds": time.perf_counter() - start, "processor": time.process_time() - processor,
                "megabytes": megabytes(), "version": sentence_transformers.__version__,
            }))


if __name__ == "__main__":
    if sys.argv[1] == "step":
        step(sys.argv[2], int(sys.argv[3]))
    else:
        minilm(sys.argv[2], sys.argv[3])
