"""PyTorch on a graphics card, on the shapes of `crates/efface-cuda/examples/networks.rs`.

    python3 card.py encoder FOLDER          writes an encoder of MiniLM's shape with random weights into FOLDER, which holds its
                                            tokenizer.json and config.json: speed does not depend on what the weights are
    python3 card.py train DATA              BBC news with a BiLSTM of 500 a direction, AG News with six layers of 64, 12 epochs
    python3 card.py encode DATA FOLDER      all texts through the encoder, in single precision, batches of 64, sorted by length
"""

from __future__ import annotations

import csv
import random
import re
import sys
import time

import torch


def corpus(data: str, name: str) -> tuple[list[str], list[int]]:
    with open(f"{data}/{name}", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    names = sorted({row[0] for row in rows})
    return [" ".join(row[1:]) for row in rows], [names.index(row[0]) for row in rows]


class Network(torch.nn.Module):
    """Word vectors that are not trained, an LSTM, the largest value of every feature, and a head."""

    def __init__(self, vectors: torch.Tensor, hidden: int, layers: int, both: bool, classes: int, dropout: float) -> None:
        super().__init__()
        self.words = torch.nn.Embedding.from_pretrained(vectors, freeze=True)
        self.lstm = torch.nn.LSTM(vectors.shape[1], hidden, layers, bidirectional=both, batch_first=True)
        self.dropout = torch.nn.Dropout(dropout)
        self.out = torch.nn.Linear(hidden * (2 if both else 1), classes)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.words(ids)), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-1e30)
        return self.out(self.dropout(states.max(dim=1).values))


def train(data: str) -> None:
    with open(f"{data}/embeddings/glove-6b-100d-top40k.vocab.txt", encoding="utf-8") as file:
        words = {word.rstrip("\n"): at + 2 for at, word in enumerate(file)}
    raw = torch.from_file(f"{data}/embeddings/glove-6b-100d-top40k.f16le.bin", size=len(words) * 100, dtype=torch.float16)
    table = raw.float().reshape(-1, 100)
    vectors = torch.cat([torch.zeros(1, 100), table.mean(0, keepdim=True), table])
    shapes = [
        ("BBC news, BiLSTM of 500", "bbc/bbc-text.csv", 500, 1, True, 250, 0.3),
        ("AG News, six layers of 64", "agnews/ag-news-test-7600.csv", 64, 6, False, 100, 0.2),
    ]
    for name, file, hidden, layers, both, most, dropout in shapes:
        texts, labels = corpus(data, file)
        ids = [[words.get(w, 1) for w in re.findall(r"\w+", text.lower())[:most]] or [1] for text in texts]
        learned = [at for at in range(len(ids)) if at % 5]
        # A tenth validates, as there.
        for_steps = [at for place, at in enumerate(learned) if place % 10]
        for tf32 in [False, True]:
            torch.backends.cudnn.allow_tf32 = tf32
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.manual_seed(0)
            random.seed(0)
            network = Network(vectors, hidden, layers, both, max(labels) + 1, dropout).cuda()
            trained = [p for p in network.parameters() if p.requires_grad]
            optimiser = torch.optim.AdamW(trained, lr=2e-3)

            def epoch() -> tuple[float, int]:
                order = for_steps[:]
                random.shuffle(order)
                batches = []
                for start in range(0, len(order), 64 * 16):
                    pool = sorted(order[start : start + 64 * 16], key=lambda at: len(ids[at]))
                    batches += [pool[at : at + 64] for at in range(0, len(pool), 64)]
                random.shuffle(batches)
                total = torch.zeros((), device="cuda")
                for batch in batches:
                    lengths = torch.tensor([len(ids[at]) for at in batch])
                    block = torch.zeros(len(batch), int(lengths.max()), dtype=torch.long)
                    for row, at in enumerate(batch):
                        block[row, : len(ids[at])] = torch.tensor(ids[at])
                    targets = torch.tensor([labels[at] for at in batch]).cuda()
                    loss = torch.nn.functional.cross_entropy(network(block.cuda(), lengths), targets)
                    optimiser.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(trained, 1.0)
                    optimiser.step()
                    total += loss.detach() * len(batch)
                return float(total) / len(order), len(batches)

            epoch()
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(12):
                loss, steps = epoch()
            torch.cuda.synchronize()
            spent = time.perf_counter() - started
            kind = "tf32" if tf32 else "fp32"
            print(f"PyTorch {torch.__version__}, {name}, {kind}: 12 epochs {spent:.2f} s, {spent / 12 / steps * 1e3:.2f} ms a step, loss {loss:.4f}")


def encoder(folder: str) -> None:
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False)
    state = {name: value.contiguous() for name, value in model.state_dict().items() if "position_ids" not in name}
    save_file(state, f"{folder}/model.safetensors")


def encode(data: str, folder: str) -> None:
    from tokenizers import Tokenizer
    from transformers import BertModel

    model = BertModel.from_pretrained(folder, add_pooling_layer=False).cuda().eval()
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    for name, file in [("BBC news", "bbc/bbc-text.csv"), ("AG News", "agnews/ag-news-test-7600.csv")]:
        texts, _ = corpus(data, file)
        started = time.perf_counter()
        tokens = sorted((found.ids for found in tokenizer.encode_batch(texts)), key=len, reverse=True)
        tokenized = time.perf_counter() - started

        def run(some: list[list[int]]) -> None:
            for start in range(0, len(some), 64):
                part = some[start : start + 64]
                block = torch.zeros(len(part), len(part[0]), dtype=torch.long)
                mask = torch.zeros_like(block)
                for row, ids in enumerate(part):
                    block[row, : len(ids)] = torch.tensor(ids)
                    mask[row, : len(ids)] = 1
                block, mask = block.cuda(), mask.cuda()
                states = model(input_ids=block, attention_mask=mask).last_hidden_state
                weights = mask.unsqueeze(-1).float()
                mean = (states * weights).sum(1) / weights.sum(1)
                torch.nn.functional.normalize(mean).cpu()

        with torch.inference_mode():
            for tf32 in [False, True]:
                torch.backends.cuda.matmul.allow_tf32 = tf32
                run(tokens[:256])
                started = time.perf_counter()
                run(tokens)
                spent = time.perf_counter() - started
                kind = "tf32" if tf32 else "fp32"
                print(f"PyTorch {torch.__version__}, {name}, MiniLM, {kind}: {len(tokens) / spent:.0f} texts a second ({spent:.3f} s; tokenizing {tokenized:.2f} s)")


if __name__ == "__main__":
    {"train": train, "encoder": encoder, "encode": encode}[sys.argv[1]](*sys.argv[2:])
