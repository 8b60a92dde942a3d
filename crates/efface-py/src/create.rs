//! What `efface.create` asks for: the options of the command's `fit`, by name.

use std::path::PathBuf;

use efface::features::{
    ColumnScale, FeatureExpansion, FeatureSteps, MissingNumbers, RowShare, StopWords,
    TargetEncoding, TermWeighting, TextAnalyzer, TextUnit, WordSource, WordSteps,
};
use efface::models::logistic::{Certifier, Privacy};
use efface::{
    Aggregation, BernoulliNb, ComplementNb, Form, GaussianNb, KMeans, LinearSvm, Logistic,
    MultinomialNb, PoissonRegression, Recipe, Ridge, Softmax,
};
use efface_engine::{
    ClassWeight, Error, FitRequest, NetworkName, NetworkOptions, NetworkRequest, Pooling,
    RecordTable, Result, RowSource, ScoringPlan, Sharding,
};
use efface_io::{ReadLimits, RowCondition, Source, TableDialect};
use serde::Deserialize;

/// The options of a fit; what is not named is as the command has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateOptions {
    files: Vec<PathBuf>,
    target: Vec<String>,
    model: String,
    /// None chooses the penalty by leave-one-out or folds.
    alpha: Option<f64>,
    fit_intercept: bool,
    form: Form,
    tolerance: Option<f64>,
    smoothing: Option<f64>,
    epsilon: Option<f64>,
    delta: f64,
    certify: CertifyWord,
    noise: Option<f64>,
    distance: Option<f64>,
    n_clusters: usize,
    cell: Option<f64>,
    /// Levels and branches.
    tree: Option<(usize, usize)>,
    id: Option<String>,
    subject: Option<String>,
    weight: Option<String>,
    text: Vec<String>,
    categorical: Vec<String>,
    numeric: Vec<String>,
    dates: Vec<String>,
    ignore: Vec<String>,
    positive: Vec<String>,
    balanced: bool,
    class_weight: Vec<(String, f64)>,
    scale: ScaleWord,
    impute: Option<GapWord>,
    fill_value: f64,
    indicator: bool,
    tfidf: bool,
    sublinear: bool,
    norm: Option<NormWord>,
    ngrams: (usize, usize),
    analyzer: UnitWord,
    stop_words: StopWordList,
    target_encode: Vec<String>,
    target_smoothing: f64,
    polynomial: Option<u32>,
    interactions: bool,
    fourier: Option<usize>,
    fourier_scale: f64,
    pca: Option<usize>,
    svd: Option<usize>,
    min_df: Option<RowShare>,
    max_df: Option<RowShare>,
    vocabulary: Option<Vec<String>>,
    max_features: Option<usize>,
    n_hashed: Option<u64>,
    max_levels: Option<usize>,
    r#where: Option<String>,
    delimiter: Option<char>,
    decimal_comma: bool,
    missing: Vec<String>,
    memory: Option<u64>,
    test: Option<PathBuf>,
    holdout: Option<f64>,
    cv: Option<usize>,
    seed: u64,
    n_shards: Option<usize>,
    n_slices: usize,
    aggregate: Option<Aggregation>,
    n_jobs: Option<usize>,
    encrypt: bool,
    recovery_key: Option<PathBuf>,
    network: NetworkSettings,
}

/// The settings that only networks have; None is what the network usually has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkSettings {
    head: Option<HeadWord>,
    max_tokens: Option<usize>,
    encoder: Option<PathBuf>,
    hidden: Option<usize>,
    layers: Option<usize>,
    pooling: Option<PoolingWord>,
    head_width: Option<usize>,
    embeddings: Option<PathBuf>,
    embedding_words: Option<PathBuf>,
    embedding_width: Option<usize>,
    train_embeddings: Option<bool>,
    epochs: Option<usize>,
    batch_size: Option<usize>,
    learning_rate: Option<f32>,
    dropout: Option<f32>,
    validation: Option<f32>,
    patience: Option<usize>,
    checkpoint: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CertifyWord {
    Certified,
    DescentToDelete,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HeadWord {
    Ridge,
    Softmax,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PoolingWord {
    Mean,
    Max,
    Last,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScaleWord {
    None,
    Standard,
    Minmax,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GapWord {
    Mean,
    Constant,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NormWord {
    L2,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UnitWord {
    Word,
    Char,
    CharWb,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StopWordList {
    None,
    English,
    Listed(Vec<String>),
}

impl CreateOptions {
    /// The request, on rows in memory where there are some.
    pub(crate) fn request(self, rows: Option<RecordTable>) -> Result<FitRequest> {
        let (model, model_for_numbers) = self.recipe()?;
        let steps = self.steps()?;
        let dialect = self.dialect()?;
        let open = |path: &PathBuf| -> Result<Source> {
            let mut limits = ReadLimits::default();
            if let Some(bytes) = self.memory {
                limits.memory = bytes;
                limits.sums = bytes;
            }
            Ok(Source::open(path, None)?
                .with_limits(limits)
                .with_dialect(dialect.clone())?)
        };
        let mut source = match rows {
            Some(rows) => RowSource::Records(rows),
            None => RowSource::several(
                self.files
                    .iter()
                    .map(open)
                    .collect::<Result<Vec<Source>>>()?,
            )?,
        };
        let mut test = self
            .test
            .as_ref()
            .map(open)
            .transpose()?
            .map(RowSource::from);
        if let Some(condition) = &self.r#where {
            let condition = RowCondition::parse(condition).map_err(|error| Error::Request {
                what: error.to_string(),
                hint: None,
            })?;
            source = source.matching(condition.clone());
            test = test.map(|rows| rows.matching(condition));
        }
        let mut request = FitRequest::new(source);
        request.network = self.network()?;
        request.scoring = match (test, self.holdout, self.cv) {
            (Some(rows), ..) => Some(ScoringPlan::Test(rows)),
            (_, Some(share), _) => Some(ScoringPlan::HoldOut {
                share,
                seed: self.seed,
            }),
            (_, _, Some(folds)) => Some(ScoringPlan::CrossValidation {
                folds,
                seed: self.seed,
            }),
            _ => None,
        };
        request.model = model;
        request.model_for_numbers = model_for_numbers;
        request.choose_penalty = self.alpha.is_none();
        request.steps = steps;
        request.words = match (self.n_hashed, self.max_features, self.vocabulary) {
            (Some(buckets), ..) => WordSource::Hashed(buckets),
            (_, Some(most), _) => WordSource::Learned(most),
            (_, _, Some(words)) => WordSource::Supplied(words),
            _ => WordSource::default(),
        };
        request.class_weight = match self.class_weight {
            _ if self.balanced => Some(ClassWeight::Balanced),
            listed if listed.is_empty() => None,
            listed => Some(ClassWeight::Listed(listed)),
        };
        request.classify = self.model == "ridge_classifier" || request.class_weight.is_some();
        request.sharding = self.n_shards.map(|shards| Sharding {
            shards,
            slices: self.n_slices,
            seed: self.seed,
            aggregation: self.aggregate,
            threads: self.n_jobs.unwrap_or(1),
        });
        request.targets = self.target;
        request.id = self.id;
        request.subject = self.subject;
        request.weight = self.weight;
        request.text = self.text;
        request.categorical = self.categorical;
        request.numeric = self.numeric;
        request.dates = self.dates;
        request.ignore = self.ignore;
        request.positive = self.positive;
        request.encrypt = self.encrypt;
        request.recovery_key = self.recovery_key;
        request.max_levels = self.max_levels.unwrap_or(request.max_levels);
        Ok(request)
    }

    /// The network of that name; None where the model is none.
    fn network(&self) -> Result<Option<NetworkRequest>> {
        let Some(name) = self.network_name() else {
            return Ok(None);
        };
        if self.steps()? != FeatureSteps::default()
            || self.n_hashed.is_some()
            || self.vocabulary.is_some()
        {
            return Err(Error::Request {
                what: "a network reads words as they are: steps for features, hashed words and vocabularies are for other models".into(),
                hint: None,
            });
        }
        let network = &self.network;
        let options = NetworkOptions {
            max_tokens: network.max_tokens,
            encoder: network.encoder.clone(),
            hidden: network.hidden,
            layers: network.layers,
            pooling: network.pooling.map(|pooling| match pooling {
                PoolingWord::Mean => Pooling::Mean,
                PoolingWord::Max => Pooling::Max,
                PoolingWord::Last => Pooling::Last,
            }),
            head_width: network.head_width,
            embeddings: network.embeddings.clone(),
            embedding_words: network.embedding_words.clone(),
            embedding_width: network.embedding_width,
            freeze_embeddings: network.train_embeddings == Some(false),
            train_embeddings: network.train_embeddings == Some(true),
            most_words: self.max_features,
            epochs: network.epochs,
            batch: network.batch_size,
            learning_rate: network.learning_rate,
            dropout: network.dropout,
            validation: network.validation,
            patience: network.patience,
            checkpoint: network.checkpoint.clone(),
            seed: self.seed,
            threads: self.n_jobs.unwrap_or(1),
            in_shards: self.n_shards.is_some(),
        };
        options.request(name).map(Some)
    }

    fn network_name(&self) -> Option<NetworkName> {
        match self.model.as_str() {
            "bilstm" => Some(NetworkName::Bilstm),
            "lstm" => Some(NetworkName::Lstm),
            "minilm" => Some(NetworkName::Minilm),
            _ => None,
        }
    }

    /// The model of that name, of a network its head, and the one in its place where a column holds
    /// numbers.
    fn recipe(&self) -> Result<(Recipe, Option<Recipe>)> {
        let penalty = self.alpha.unwrap_or(1.0);
        // Shards are trained side by side; within one there is nothing left to share out.
        let workers = if self.n_shards.is_some() {
            Some(1)
        } else {
            self.n_jobs
        };
        let counts = self.smoothing.unwrap_or(1.0);
        let usual = GaussianNb::default().var_smoothing;
        let gaussian = GaussianNb {
            var_smoothing: self.smoothing.unwrap_or(usual),
        };
        let recipe: Recipe = match self.model.as_str() {
            "bilstm" | "lstm" | "minilm"
                if matches!(self.network.head, Some(HeadWord::Softmax)) =>
            {
                // Logistic for two classes, softmax for more.
                let mut logistic = Logistic::new(penalty).intercept(self.fit_intercept);
                logistic.tolerance = self.tolerance.unwrap_or(logistic.tolerance);
                logistic.into()
            }
            "ridge" | "ridge_classifier" | "bilstm" | "lstm" | "minilm" => {
                let mut ridge = Ridge::new(penalty).intercept(self.fit_intercept);
                ridge.tolerance = self.tolerance.unwrap_or(ridge.tolerance);
                ridge.form = self.form;
                ridge.threads = workers.unwrap_or(ridge.threads);
                ridge.into()
            }
            "logistic" => {
                let mut logistic = Logistic::new(penalty).intercept(self.fit_intercept);
                logistic.tolerance = self.tolerance.unwrap_or(logistic.tolerance);
                logistic.threads = workers.unwrap_or(logistic.threads);
                logistic.privacy = self.epsilon.map(|epsilon| self.privacy(epsilon));
                logistic.into()
            }
            "softmax" => {
                let mut softmax = Softmax::new(penalty).intercept(self.fit_intercept);
                softmax.tolerance = self.tolerance.unwrap_or(softmax.tolerance);
                softmax.threads = workers.unwrap_or(softmax.threads);
                softmax.into()
            }
            "svm" => {
                let mut svm = LinearSvm::new(penalty).intercept(self.fit_intercept);
                svm.tolerance = self.tolerance.unwrap_or(svm.tolerance);
                svm.into()
            }
            "poisson" => {
                let mut poisson = PoissonRegression::new(penalty).intercept(self.fit_intercept);
                poisson.tolerance = self.tolerance.unwrap_or(poisson.tolerance);
                poisson.into()
            }
            "naive_bayes" => {
                return Ok((
                    MultinomialNb { alpha: counts }.into(),
                    Some(gaussian.into()),
                ));
            }
            "gaussian_nb" => gaussian.into(),
            "multinomial_nb" => MultinomialNb { alpha: counts }.into(),
            "complement_nb" => ComplementNb { alpha: counts }.into(),
            "bernoulli_nb" => BernoulliNb {
                alpha: counts,
                ..BernoulliNb::default()
            }
            .into(),
            "kmeans" => match self.tree {
                Some((height, width)) => KMeans::divided(self.n_clusters, height, width)
                    .seed(self.seed)
                    .into(),
                None => KMeans::quantised(self.n_clusters, self.cell.unwrap_or(0.05))
                    .seed(self.seed)
                    .into(),
            },
            other => {
                return Err(Error::Request {
                    what: format!(
                        "there is no model '{other}'; ridge, ridge_classifier, logistic, softmax, svm, poisson, naive_bayes, gaussian_nb, \
                         multinomial_nb, complement_nb, bernoulli_nb, kmeans, bilstm, lstm and minilm exist"
                    ),
                    hint: None,
                });
            }
        };
        Ok((recipe, None))
    }

    /// The noise of a certified model; the engine draws the secret seed.
    fn privacy(&self, epsilon: f64) -> Privacy {
        let mut privacy = match self.certify {
            CertifyWord::Certified => Privacy::removal(epsilon, self.delta, 0),
            CertifyWord::DescentToDelete => Privacy::descent(epsilon, self.delta, 0),
        };
        match &mut privacy.certifier {
            Certifier::Removal { noise } => *noise = self.noise.unwrap_or(*noise),
            Certifier::Descent { distance } => *distance = self.distance.unwrap_or(*distance),
        }
        privacy
    }

    fn steps(&self) -> Result<FeatureSteps> {
        let stop_words = match &self.stop_words {
            StopWordList::None => StopWords::None,
            StopWordList::English => StopWords::English,
            StopWordList::Listed(words) => StopWords::Listed(words.clone()),
        };
        let unit = match self.analyzer {
            UnitWord::Word => TextUnit::Words,
            UnitWord::Char => TextUnit::Characters,
            UnitWord::CharWb => TextUnit::CharactersInWords,
        };
        let (least, most) = self.ngrams;
        let weighting = TermWeighting {
            sublinear: self.sublinear,
            smooth: true,
            normalised: matches!(self.norm, Some(NormWord::L2)),
        };
        Ok(FeatureSteps {
            scale: match self.scale {
                ScaleWord::None => ColumnScale::None,
                ScaleWord::Standard => ColumnScale::Standard,
                ScaleWord::Minmax => ColumnScale::MinMax,
            },
            missing: match self.impute {
                None => MissingNumbers::Refused,
                Some(GapWord::Mean) => MissingNumbers::Mean {
                    indicator: self.indicator,
                },
                Some(GapWord::Constant) => MissingNumbers::Constant {
                    value: self.fill_value,
                    indicator: self.indicator,
                },
            },
            words: WordSteps {
                analyzer: TextAnalyzer::new(unit, least, most, stop_words)?,
                least_rows: self.min_df,
                most_rows: self.max_df,
                weighting: self.tfidf.then_some(weighting),
            },
            target_means: (!self.target_encode.is_empty()).then(|| TargetEncoding {
                columns: self.target_encode.clone(),
                smoothing: self.target_smoothing,
            }),
            expansion: self.expansion()?,
        })
    }

    /// What becomes of the features of all columns together.
    fn expansion(&self) -> Result<FeatureExpansion> {
        let components = |count, centred| FeatureExpansion::Components { count, centred };
        let scale = self.fourier_scale;
        let asked = [
            self.polynomial.map(|degree| FeatureExpansion::Polynomial {
                degree,
                interactions: self.interactions,
            }),
            self.fourier.map(|features| FeatureExpansion::Fourier {
                features,
                scale,
                seed: self.seed,
            }),
            self.pca.map(|count| components(count, true)),
            self.svd.map(|count| components(count, false)),
        ];
        let asked: Vec<FeatureExpansion> = asked.into_iter().flatten().collect();
        match asked.as_slice() {
            [] => Ok(FeatureExpansion::None),
            [one] => Ok(*one),
            _ => Err(Error::Request {
                what: "two of polynomial, fourier, pca and svd are asked for; choose one".into(),
                hint: None,
            }),
        }
    }

    fn dialect(&self) -> Result<TableDialect> {
        let mut dialect = TableDialect {
            decimal_comma: self.decimal_comma,
            ..TableDialect::default()
        };
        if let Some(delimiter) = self.delimiter {
            let byte = u8::try_from(delimiter)
                .ok()
                .filter(u8::is_ascii)
                .ok_or_else(|| Error::Request {
                    what: format!("delimiter = {delimiter:?} is no ASCII character"),
                    hint: None,
                })?;
            dialect.separator = Some(byte);
        }
        dialect.missing.extend(self.missing.iter().cloned());
        Ok(dialect)
    }
}
