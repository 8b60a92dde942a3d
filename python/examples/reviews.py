"""Reviews: a customer asks to be forgotten, the model file forgets them, and an auditor checks the receipt.

    python reviews.py [womens-clothing.csv.gz]

Fits a classifier of reviews to a model file, forgets all reviews of one class of customers' items by id, and verifies the
receipt with nothing but the public key. Without a data set, it makes a small one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import efface


def sample(folder: Path) -> Path:
    """A few hundred reviews that a machine wrote."""
    good, bad = ["lovely dress", "fits so well", "soft and warm"], ["fell apart", "too small", "itchy and thin"]
    lines = ["id,stars,text"]
    for at in range(300):
        stars = 5 if at % 3 else 1
        words = (good if stars == 5 else bad)[at % 3 - 1 if stars == 5 else at // 3 % 3]
        lines.append(f"{at},{stars},{words}")
    path = folder / "reviews.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = Path(sys.argv[1]) if len(sys.argv) > 1 else sample(folder)
        ignored = ["clothing_id", "title", "recommended"] if len(sys.argv) > 1 else []
        model = efface.create(
            source,
            folder / "reviews.efface",
            target="stars",
            model="ridge_classifier",
            id="id",
            text=["text"],
            ignore=ignored,
        )
        print(model)

        report = model.forget(["3", "17", "42"], request_id="ticket-4711")
        print(report)
        receipt = report.receipt
        assert receipt is not None
        receipt.save(folder / "receipt.cose")

        # What follows needs the receipt and the public key, and no model.
        verified = efface.verify(folder / "receipt.cose", model.public_key)
        print(verified)
        print("could not be taken out:", verified.to_dict()["not_covered"] or "nothing")

        again = model.forget(["3", "17", "42"], request_id="ticket-4711")
        print("the same request again:", "answered as before" if again.replayed else "done anew")


if __name__ == "__main__":
    main()
