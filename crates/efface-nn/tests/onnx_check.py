"""Runs every model of a folder with onnxruntime and compares it with the numbers beside it.

For each NAME.onnx there is NAME.json: {"inputs": {name: {"type", "shape", "values"}}, "outputs": {the same},
"tolerance": number}. Ends with status 1 at the first difference.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime


def array(entry):
    return np.array(entry["values"], dtype=entry["type"]).reshape(entry["shape"])


def check(model):
    onnx.checker.check_model(onnx.load(model), full_check=True)
    case = json.loads(model.with_suffix(".json").read_text())
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = list(case["outputs"])
    inputs = {name: array(entry) for name, entry in case["inputs"].items()}
    worst = 0.0
    for name, found in zip(names, session.run(names, inputs)):
        expected = array(case["outputs"][name])
        if found.shape != expected.shape:
            sys.exit(f"{model.name}: {name} has shape {found.shape}, expected {expected.shape}")
        worst = max(worst, float(np.abs(found - expected).max()))
        if not worst <= case["tolerance"]:
            sys.exit(f"{model.name}: {name} differs by {worst:.1e}\n{found}\n{expected}")
    print(f"{model.name}: largest difference {worst:.1e}")


if __name__ == "__main__":
    models = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    if not models:
        sys.exit("no models")
    for each in models:
        check(each)
