"""Model files from Python: forgetting in one transaction, receipts, and their verification."""

from __future__ import annotations

import json

import pytest

import efface

ROWS = ["house,owner,rooms,area,price"] + [f"h{at},p{at % 7},{at % 5},{at * at % 31},{100 + at % 5 * 40}" for at in range(40)]


@pytest.fixture
def houses(tmp_path):
    (tmp_path / "houses.csv").write_text("\n".join(ROWS))
    return efface.create(
        tmp_path / "houses.csv", tmp_path / "houses.efface", target="price", id="house", subject="owner"
    )


def test_forget_by_id_and_by_person(houses):
    report = houses.forget(["h3", "h4"])
    assert (report.forgotten, report.rows, report.outcome) == (2, 38, "erased")
    assert report.evidence.claim == "exact"
    assert report.receipt.kind == "forget"
    again = houses.forget(subject=("owner", "p1"))
    assert again.forgotten == 6
    assert efface.open(houses.path).summary()["rows"] == 32
    with pytest.raises(efface.UnknownRowError, match="row h3 is not in this model; it was forgotten on"):
        houses.forget("h3")
    with pytest.raises(efface.UnknownRowError, match="h99"):
        houses.forget("h99")
    with pytest.raises(TypeError, match="either rows or a subject"):
        houses.forget("h1", subject=("owner", "p1"))


def test_a_named_request_has_one_effect(houses):
    first = houses.forget("h3", request_id="ticket-1")
    again = houses.forget("h3", request_id="ticket-1")
    assert not first.replayed and again.replayed and again.receipt == first.receipt
    with pytest.raises(ValueError):
        houses.forget("h4", request_id="ticket-1")


def test_a_dry_run_writes_nothing(houses):
    report = houses.forget("h3", dry_run=True)
    assert report.dry_run and report.receipt is None
    assert houses.summary()["rows"] == 40


def test_receipts_verify_and_altered_ones_do_not(houses, tmp_path):
    key = houses.public_key
    receipt = houses.forget(["h3"]).receipt
    assert efface.verify(receipt, key).to_dict()["rows"]["removed"] == 1
    receipt.save(tmp_path / "receipt.cose")
    assert efface.verify(tmp_path / "receipt.cose", key) == receipt
    assert efface.verify(receipt.to_bytes(), key) == receipt
    assert efface.verify(str(tmp_path / "receipt.cose"), key) == receipt
    with pytest.raises(TypeError, match="not a dict"):
        efface.verify(receipt.to_dict(), key)
    with pytest.raises(efface.VerificationError):
        efface.verify(receipt.to_bytes().replace(b'"removed":1', b'"removed":2'), key)
    other = efface.create(tmp_path / "houses.csv", tmp_path / "other.efface", target="price", id="house")
    with pytest.raises(efface.VerificationError):
        efface.verify(receipt, other.public_key)
    with pytest.raises(efface.VerificationError):
        efface.verify(receipt, "no key")
    assert [each.kind for each in houses.receipts()] == ["fit", "forget"]
    assert all(check["passed"] for check in houses.verify(key))


def test_what_is_shown(houses):
    report = houses.forget("h3")
    assert repr(houses).endswith("model='ridge', rows=39)")
    assert repr(report).startswith("Report(outcome='erased', method=")
    assert repr(report.receipt).startswith("Receipt(sequence=1, kind='forget', outcome='erased', removed=1, added=0, id=")
    for each in (houses, report, report.receipt):
        assert each._repr_html_().startswith("<table>")
    assert "h3" not in json.dumps(report.receipt.to_dict()) and "p3" not in report.receipt._repr_html_()
    assert report.to_dict()["forgotten"] == 1


def test_learn_amend_and_predict(houses, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text(f"{ROWS[0]}\nh90,p9,2,9,170\n")
    assert houses.learn(new).learned == 1
    new.write_text(f"{ROWS[0]}\nh90,p9,2,9,180\n")
    assert houses.amend(new).outcome == "done"
    (found,) = houses.predict(new)
    assert found["id"] == "h90" and 140 < found["scores"][0] < 220
    assert "coefficients" in dict(houses.parameters()["tables"])
    assert houses.settle()["bytes_after"] > 0
    assert houses.checkpoint().count("\n") >= 3


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "no.efface").write_text("nothing of the kind")
    with pytest.raises(efface.BadModelError):
        efface.open(tmp_path / "no.efface")
    with pytest.raises(FileNotFoundError):
        efface.open(tmp_path / "absent.efface")
    with pytest.raises(ValueError, match="there is no model 'magic'"):
        efface.create(tmp_path / "no.efface", tmp_path / "x.efface", model="magic")


def test_hints_name_arguments_and_no_flags(houses, tmp_path):
    table, path = tmp_path / "houses.csv", tmp_path / "x.efface"

    def refused(**arguments):
        with pytest.raises(ValueError) as caught:
            efface.create(table, path, **arguments)
        assert "--" not in str(caught.value), caught.value
        return str(caught.value)

    assert refused().endswith("hint: name the column to predict with `target`")
    assert "hint: use model='softmax', or make two of them" in refused(target="owner", model="logistic")
    assert "model='ridge_classifier'" in refused(target="owner")
    assert "columns that must not count with `ignore`" in refused(target="price", model="kmeans")
    plain = efface.create(table, path, target="price")
    with pytest.raises(efface.UnknownRowError, match="name the column with `subject` when fitting"):
        plain.forget(subject=("owner", "p1"))
    with pytest.raises(efface.RefusedError, match="fit with `id` to amend rows"):
        plain.amend(table)
    with pytest.raises(efface.UnknownRowError, match="with `request_id` or `allow_missing` the log records"):
        houses.forget(subject=("owner", "nobody"))


def test_what_is_not_covered_has_a_code(houses):
    codes = [what.code for what in houses.forget("h3").evidence.not_covered]
    assert "forgotten_ids" in codes
    (what,) = [what for what in houses.forget("h4").evidence.not_covered if what.code == "forgotten_ids"]
    assert str(what) == what.detail and what.detail.startswith("that a row of a given id")
    receipt = houses.receipts()[-1].to_dict()
    assert {"code": what.code, "detail": what.detail} in receipt["not_covered"]


def test_a_file_in_the_way_is_not_overwritten(houses, tmp_path):
    with pytest.raises(FileExistsError):
        efface.create(tmp_path / "houses.csv", houses.path, target="price", id="house")
    again = efface.create(tmp_path / "houses.csv", houses.path, target="price", id="house", overwrite=True)
    assert again.summary()["rows"] == 40
