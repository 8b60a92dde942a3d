//! The models, and the settings that only some of them have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use efface::Form;
use efface_engine::SuppressionScope;

use super::parse::{self, GridSize};
use super::scoring::PenaltyValue;

/// What can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelName {
    Ridge,
    Logistic,
    Softmax,
    Svm,
    Poisson,
    NaiveBayes,
    #[value(name = "kmeans")]
    KMeans,
    Bilstm,
    Lstm,
    Minilm,
    /// Refused, with the reason, as is the one after it.
    #[value(name = "elastic-net", alias = "lasso", hide = true)]
    ElasticNet,
    #[value(hide = true)]
    Quantile,
}

impl ModelName {
    /// The word for it on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ridge => "ridge",
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
            Self::NaiveBayes => "naive-bayes",
            Self::KMeans => "kmeans",
            Self::Bilstm => "bilstm",
            Self::Lstm => "lstm",
            Self::Minilm => "minilm",
            Self::ElasticNet => "elastic-net",
            Self::Quantile => "quantile",
            Self::Poisson => "poisson",
            Self::Svm => "svm",
        }
    }
}

/// Settings that are not for every model; one that is given for another model is refused.
#[derive(Debug, Args)]
pub(crate) struct ModelArguments {
    /// Strength of the penalty λ/2 ‖θ‖² (poisson: of every row), or auto: the best of 0.001 to
    /// 10000 by leave-one-out (ridge) or five folds [default: 1]
    #[arg(long, value_name = "λ", allow_hyphen_values = true, value_parser = super::scoring::penalty, help_heading = "Linear models")]
    pub(crate) lambda: Option<PenaltyValue>,

    /// No constant term
    #[arg(long, help_heading = "Linear models")]
    pub(crate) no_intercept: bool,

    /// What a model keeps in order to forget fast, see below [default: auto]
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Linear models")]
    pub(crate) curvature: Option<CurvatureName>,

    /// Relative distance to retraining at which a model repairs itself (ridge, 1e-9) or that a
    /// forget must reach (logistic and softmax, 3e-4; svm and poisson, 1e-6)
    #[arg(
        long,
        value_name = "X",
        allow_hyphen_values = true,
        help_heading = "Linear models"
    )]
    pub(crate) tolerance: Option<f64>,

    /// Threads for the large products, or for shards [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Linear models")]
    pub(crate) threads: Option<usize>,

    /// What multiplies the rows of a ridge model, trains a network or encodes texts: the processor,
    /// or an NVIDIA card in a build with the feature cuda [default: cpu]
    #[arg(
        long,
        value_enum,
        value_name = "DEVICE",
        help_heading = "Linear models"
    )]
    pub(crate) device: Option<DeviceName>,

    /// Train with noise, so that forgetting is certified (ε, δ); logistic only
    #[arg(
        long,
        value_name = "ε",
        allow_hyphen_values = true,
        requires = "delta",
        help_heading = "Certified forgetting"
    )]
    pub(crate) epsilon: Option<f64>,

    /// The chance that the certificate allows itself to be wrong; 1e-5, say
    #[arg(
        long,
        value_name = "δ",
        allow_hyphen_values = true,
        requires = "epsilon",
        help_heading = "Certified forgetting"
    )]
    pub(crate) delta: Option<f64>,

    /// How to certify [default: certified]
    #[arg(
        long,
        value_enum,
        value_name = "METHOD",
        requires = "epsilon",
        help_heading = "Certified forgetting"
    )]
    pub(crate) certify: Option<CertifierName>,

    /// Standard deviation of the noise in the objective, for certified: more is a larger budget and
    /// a worse model [default: 1]
    #[arg(
        long,
        value_name = "σ",
        allow_hyphen_values = true,
        requires = "epsilon",
        help_heading = "Certified forgetting"
    )]
    pub(crate) noise: Option<f64>,

    /// Distance to the optimum before anything is published, for descent_to_delete: less is less
    /// noise and more steps [default: 0.001]
    #[arg(
        long,
        value_name = "Δ",
        allow_hyphen_values = true,
        requires = "epsilon",
        conflicts_with = "noise",
        help_heading = "Certified forgetting"
    )]
    pub(crate) distance: Option<f64>,

    /// Train S shards of R slices each by themselves: a forget trains one shard again
    #[arg(long, value_name = "SxR", value_parser = parse::grid, help_heading = "Shards")]
    pub(crate) sisa: Option<GridSize>,

    /// How shards answer together [default: vote for classes, mean for numbers]
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        requires = "sisa",
        help_heading = "Shards"
    )]
    pub(crate) aggregate: Option<AggregateName>,

    /// Features as counts (multinomial, complement), as there or not (bernoulli), or as numbers
    /// (gaussian) [default: gaussian when a column holds numbers, else multinomial]
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Naive Bayes")]
    pub(crate) likelihood: Option<LikelihoodName>,

    /// Smoothing: what is added to every count (1), or the share of the largest variance that is
    /// added to every variance (Gaussian, 1e-9)
    #[arg(
        long,
        value_name = "X",
        allow_hyphen_values = true,
        help_heading = "Naive Bayes"
    )]
    pub(crate) smoothing: Option<f64>,

    /// How many clusters to find
    #[arg(long, value_name = "K", help_heading = "k-means")]
    pub(crate) clusters: Option<usize>,

    /// Side of the lattice that centres lie on, in the units of the features [default: 0.05]
    #[arg(
        long,
        value_name = "ε",
        allow_hyphen_values = true,
        help_heading = "k-means"
    )]
    pub(crate) cell: Option<f64>,

    /// Divide and conquer instead of a lattice: levels × branches, as in 1x16
    #[arg(long, value_name = "HEIGHTxWIDTH", value_parser = parse::grid, conflicts_with = "cell", help_heading = "k-means")]
    pub(crate) tree: Option<GridSize>,

    /// What the start of k-means, the places of rows in shards or among those held out, or a
    /// training follow from [default: 0]
    #[arg(long, value_name = "N", help_heading = "k-means")]
    pub(crate) seed: Option<u64>,
}

impl ModelArguments {
    /// The penalty to begin with; one that is chosen later replaces it.
    pub(crate) fn penalty(&self) -> f64 {
        match self.lambda {
            Some(PenaltyValue::Given(lambda)) => lambda,
            Some(PenaltyValue::Auto) | None => 1.0,
        }
    }
}

/// What a model keeps of its curvature: ridge any of these, a classifier its Hessian (auto) or
/// nothing (iterative).
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CurvatureName {
    Auto,
    Factor,
    Inverse,
    Rows,
    Iterative,
}

impl From<CurvatureName> for Form {
    fn from(curvature: CurvatureName) -> Self {
        match curvature {
            CurvatureName::Auto => Self::Auto,
            CurvatureName::Factor => Self::Factor,
            CurvatureName::Inverse => Self::Inverse,
            CurvatureName::Rows => Self::Rows,
            CurvatureName::Iterative => Self::Iterative,
        }
    }
}

/// What multiplies rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceName {
    Cpu,
    Cuda,
}

/// The two ways to certify.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum CertifierName {
    Certified,
    DescentToDelete,
}

/// How shards answer together.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum AggregateName {
    Vote,
    Mean,
}

/// How naive Bayes takes features.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LikelihoodName {
    Multinomial,
    Complement,
    Bernoulli,
    Gaussian,
}

/// What keeps a forgotten row from being learned again
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SuppressionWord {
    /// Its id, and ids that look like it
    Ids,
    /// Also the person whom a request to forget has named (the default)
    Subjects,
    /// Also its content, for rows that are forgotten from now on
    Content,
}

impl From<SuppressionWord> for SuppressionScope {
    fn from(word: SuppressionWord) -> Self {
        match word {
            SuppressionWord::Ids => Self::Ids,
            SuppressionWord::Subjects => Self::Subjects,
            SuppressionWord::Content => Self::Content,
        }
    }
}

/// What becomes of a model that a fit overwrites.
#[derive(Debug, Args)]
pub(crate) struct OverwriteArguments {
    /// Put the new fit in the place of MODEL, whose log, keys, policy and list of what it has
    /// forgotten go on; rows on that list are refused
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["output", "force"])]
    pub(crate) replace: Option<PathBuf>,

    /// Overwrite what is at the output. For a model, --discard-log must be said too
    #[arg(long)]
    pub(crate) force: bool,

    /// Give up the log and the signing key of the overwritten model: its receipts can no longer be
    /// checked against it. What it has forgotten must not come back to the new one all the same
    #[arg(long, requires = "force")]
    pub(crate) discard_log: bool,

    /// Give up the list of what the overwritten model has forgotten: those rows may come back
    #[arg(long, requires = "discard_log")]
    pub(crate) drop_suppressed: bool,
}

/// Give back the places of forgotten rows in a model file
#[derive(Debug, Args)]
#[command(after_help = super::help::SETTLE)]
pub(crate) struct SettleArguments {
    /// Model file
    pub(crate) model: PathBuf,
}
