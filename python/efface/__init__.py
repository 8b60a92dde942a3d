"""Models that forget, with scikit-learn's names and settings.

>>> import numpy as np
>>> import efface
>>> X = np.random.default_rng(0).normal(size=(100, 3))
>>> y = X @ [1.0, 2.0, 3.0]
>>> model = efface.Ridge(alpha=0.1).fit(X, y)
>>> evidence = model.forget([4, 17])
>>> evidence.rows
98
>>> evidence.bound < 1e-9  # how far from a model that never saw them it can be
True
"""

from . import engines
from ._core import Evidence, __version__, methods
from ._errors import (
    BadModelError,
    DuplicateRowError,
    NotConvergedError,
    NotDeterminedError,
    RefusedError,
    ToleranceWarning,
    UnknownRowError,
    VerificationError,
)
from ._persist import load
from .auditing import Audit, Injection, audit, feature_injection
from .bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from .clusters import KMeans
from .creating import create
from .ensembles import SisaEnsemble
from .files import ModelFile, Receipt, Report, open, verify
from .linear import LinearSVC, LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier
from .pipelines import Pipeline, PipelineEvidence, forgettable
from .sisa import Sisa
from .statistics import Statistics, StatisticsRidge
from .steps import (
    PCA,
    CountVectorizer,
    MinMaxScaler,
    OneHotEncoder,
    SimpleImputer,
    StandardScaler,
    TfidfVectorizer,
    TruncatedSVD,
)
from .text import MiniLM

__all__ = [
    "PCA",
    "Audit",
    "BadModelError",
    "BernoulliNB",
    "ComplementNB",
    "CountVectorizer",
    "DuplicateRowError",
    "Evidence",
    "GaussianNB",
    "Injection",
    "KMeans",
    "LinearSVC",
    "LogisticRegression",
    "MiniLM",
    "MinMaxScaler",
    "ModelFile",
    "MultinomialNB",
    "NotConvergedError",
    "NotDeterminedError",
    "OneHotEncoder",
    "Pipeline",
    "PipelineEvidence",
    "Receipt",
    "RefusedError",
    "Report",
    "PoissonRegressor",
    "Ridge",
    "RidgeClassifier",
    "SimpleImputer",
    "Sisa",
    "SisaEnsemble",
    "StandardScaler",
    "Statistics",
    "StatisticsRidge",
    "TfidfVectorizer",
    "ToleranceWarning",
    "TruncatedSVD",
    "UnknownRowError",
    "VerificationError",
    "__version__",
    "audit",
    "create",
    "engines",
    "feature_injection",
    "forgettable",
    "load",
    "methods",
    "open",
    "verify",
]
