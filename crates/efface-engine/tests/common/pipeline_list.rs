//! Pipelines of steps and models, each with a name.

use efface::features::{
    ColumnScale, FeatureExpansion, FeatureSteps, MissingNumbers, RowShare, StopWords,
    TargetEncoding, TermWeighting, TextAnalyzer, TextUnit, WordSource, WordSteps,
};
use efface::{BernoulliNb, ComplementNb, LinearSvm, Logistic, PoissonRegression, Softmax};
use efface_engine::{ClassWeight, FitRequest};

/// A pipeline: its name, and what it asks of a fit.
pub(crate) type Pipeline = (&'static str, fn(&mut FitRequest));

pub(crate) fn all_steps(request: &mut FitRequest) {
    let analyzer = TextAnalyzer::new(TextUnit::Words, 1, 2, StopWords::English).unwrap();
    request.steps = FeatureSteps {
        scale: ColumnScale::Standard,
        missing: MissingNumbers::Mean { indicator: true },
        words: WordSteps {
            analyzer,
            least_rows: Some(RowShare::Rows(2)),
            most_rows: Some(RowShare::Share(0.9)),
            weighting: Some(TermWeighting::default()),
        },
        ..FeatureSteps::default()
    };
    request.text = vec!["words".into()];
    request.numeric = vec!["size".into(), "age".into()];
    request.categorical = vec!["colour".into()];
    request.words = WordSource::Learned(30);
}

pub(crate) fn numbers(request: &mut FitRequest) {
    request.numeric = vec!["size".into(), "age".into()];
    request.steps.missing = MissingNumbers::Constant {
        value: -1.0,
        indicator: false,
    };
    request.ignore = vec!["colour".into(), "words".into()];
}

pub(crate) fn words(request: &mut FitRequest) {
    request.text = vec!["words".into()];
    request.words = WordSource::Learned(15);
}

pub(crate) const PIPELINES: &[Pipeline] = &[
    ("ridge on standard scores", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::Standard;
    }),
    ("ridge between extremes", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::MinMax;
    }),
    ("ridge on chosen words", words),
    ("ridge on everything", all_steps),
    ("ridge on standard scores and levels", |request| {
        request.numeric = vec!["size".into()];
        request.steps.scale = ColumnScale::Standard;
        request.ignore = vec!["words".into(), "age".into()];
    }),
    ("ridge on weights of words", |request| {
        request.text = vec!["words".into()];
        request.words = WordSource::Learned(1000);
        request.steps.words.weighting = Some(TermWeighting {
            normalised: false,
            ..TermWeighting::default()
        });
    }),
    ("ridge on levels", |request| {
        request.numeric = vec!["size".into()];
        request.ignore = vec!["words".into(), "age".into()];
    }),
    ("logistic on everything", |request| {
        all_steps(request);
        request.targets = vec!["liked".into()];
        request.model = Logistic::default().tolerance(1e-10).into();
    }),
    ("softmax on chosen words", |request| {
        words(request);
        request.targets = vec!["stars".into()];
        request.model = Softmax::default().tolerance(1e-10).into();
    }),
    ("naive Bayes on weights", |request| {
        words(request);
        request.targets = vec!["stars".into()];
        request.steps.words.weighting = Some(TermWeighting {
            sublinear: true,
            ..TermWeighting::default()
        });
        *request = request.clone().naive_bayes();
    }),
    ("logistic on balanced classes", |request| {
        numbers(request);
        request.targets = vec!["liked".into()];
        request.class_weight = Some(ClassWeight::Balanced);
        request.model = Logistic::default().tolerance(1e-10).into();
    }),
    ("ridge on balanced classes", |request| {
        numbers(request);
        request.targets = vec!["stars".into()];
        request.classify = true;
        request.class_weight = Some(ClassWeight::Balanced);
        request.steps.scale = ColumnScale::Standard;
    }),
    ("softmax on weighted classes", |request| {
        words(request);
        request.targets = vec!["stars".into()];
        request.class_weight = Some(ClassWeight::Listed(vec![
            ("1".into(), 3.0),
            ("3".into(), 0.5),
        ]));
        request.model = Softmax::default().tolerance(1e-10).into();
    }),
    ("naive Bayes on balanced classes", |request| {
        words(request);
        request.targets = vec!["stars".into()];
        request.class_weight = Some(ClassWeight::Balanced);
        *request = request.clone().naive_bayes();
    }),
    ("Bernoulli naive Bayes on all words", |request| {
        words(request);
        request.words = WordSource::Learned(1000);
        request.targets = vec!["stars".into()];
        request.model = BernoulliNb::default().into();
    }),
    ("complement naive Bayes on chosen words", |request| {
        words(request);
        request.targets = vec!["stars".into()];
        request.model = ComplementNb::default().into();
    }),
    ("ridge on products of everything", |request| {
        all_steps(request);
        request.words = WordSource::Learned(8);
        request.steps.expansion = FeatureExpansion::Polynomial {
            degree: 2,
            interactions: false,
        };
    }),
    ("logistic on interactions", |request| {
        numbers(request);
        request.ignore = vec!["words".into()];
        request.steps.scale = ColumnScale::Standard;
        request.steps.expansion = FeatureExpansion::Polynomial {
            degree: 3,
            interactions: true,
        };
        request.targets = vec!["liked".into()];
        request.model = Logistic::default().tolerance(1e-10).into();
    }),
    ("ridge on random waves of everything", |request| {
        all_steps(request);
        request.steps.expansion = FeatureExpansion::Fourier {
            features: 20,
            scale: 3.0,
            seed: 5,
        };
    }),
    ("ridge on principal components", |request| {
        all_steps(request);
        request.steps.expansion = FeatureExpansion::Components {
            count: 4,
            centred: true,
        };
    }),
    ("ridge on principal components of numbers", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::Standard;
        request.steps.expansion = FeatureExpansion::Components {
            count: 1,
            centred: true,
        };
    }),
    ("logistic on singular vectors", |request| {
        words(request);
        request.steps.expansion = FeatureExpansion::Components {
            count: 3,
            centred: false,
        };
        request.targets = vec!["liked".into()];
        request.model = Logistic::default().tolerance(1e-10).into();
    }),
    ("naive Bayes on principal components", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::Standard;
        request.steps.expansion = FeatureExpansion::Components {
            count: 2,
            centred: true,
        };
        request.targets = vec!["stars".into()];
        *request = request.clone().naive_bayes();
    }),
    ("ridge on mean targets", |request| {
        numbers(request);
        request.ignore = vec!["words".into()];
        request.steps.target_means = Some(TargetEncoding {
            columns: vec!["colour".into()],
            smoothing: 2.0,
        });
    }),
    ("logistic on mean targets alone", |request| {
        request.steps.target_means = Some(TargetEncoding {
            columns: vec!["colour".into()],
            smoothing: 2.0,
        });
        request.ignore = ["words", "size", "age"].map(String::from).to_vec();
        request.targets = vec!["liked".into()];
        request.model = Logistic::default().tolerance(1e-10).into();
    }),
    ("softmax on mean targets of three classes", |request| {
        numbers(request);
        request.ignore = vec!["words".into()];
        request.steps.scale = ColumnScale::Standard;
        request.steps.target_means = Some(TargetEncoding {
            columns: vec!["colour".into()],
            smoothing: 0.0,
        });
        request.targets = vec!["stars".into()];
        request.model = Softmax::default().tolerance(1e-10).into();
    }),
    ("svm on everything", |request| {
        all_steps(request);
        request.targets = vec!["stars".into()];
        request.model = LinearSvm::new(0.5).into();
    }),
    (
        "Poisson regression on standard scores and levels",
        |request| {
            numbers(request);
            request.ignore = vec!["words".into()];
            request.steps.scale = ColumnScale::Standard;
            request.targets = vec!["stars".into()];
            request.model = PoissonRegression::new(0.1).into();
        },
    ),
    // Every word is a feature, and its smoothing counts them.
    ("naive Bayes on all words", |request| {
        words(request);
        request.words = WordSource::Learned(1000);
        request.targets = vec!["stars".into()];
        *request = request.clone().naive_bayes();
    }),
    ("naive Bayes on standard scores", |request| {
        numbers(request);
        request.targets = vec!["stars".into()];
        request.steps.scale = ColumnScale::Standard;
        *request = request.clone().naive_bayes();
    }),
    ("logistic between extremes", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::MinMax;
        request.targets = vec!["liked".into()];
        request.model = Logistic::default().tolerance(1e-10).into();
    }),
    ("softmax between extremes, with gaps", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::MinMax;
        request.steps.missing = MissingNumbers::Mean { indicator: true };
        request.targets = vec!["stars".into()];
        request.model = Softmax::default().tolerance(1e-10).into();
    }),
    ("ridge on products between extremes", |request| {
        numbers(request);
        request.steps.scale = ColumnScale::MinMax;
        request.steps.expansion = FeatureExpansion::Polynomial {
            degree: 2,
            interactions: false,
        };
    }),
];
