//! The steps between columns and features that the options ask for.

use std::path::Path;

use efface::features::{
    FeatureExpansion, FeatureSteps, MissingNumbers, StopWords, TargetEncoding, TermWeighting,
    TextAnalyzer, WordSteps,
};

use crate::cli::{FeatureArguments, FitArguments, GapFilling, NormName};
use crate::failure::{Failure, Result};
use crate::list;

pub(super) fn steps(args: &FitArguments) -> Result<FeatureSteps> {
    let asked = &args.features;
    let target_means = (!asked.target_encode.is_empty()).then(|| TargetEncoding {
        columns: asked.target_encode.clone(),
        smoothing: asked.target_smoothing,
    });
    Ok(FeatureSteps {
        scale: asked.scale.into(),
        missing: missing(asked)?,
        words: words(args)?,
        target_means,
        expansion: expansion(args),
    })
}

/// What becomes of the features of all columns together; the options exclude each other.
fn expansion(args: &FitArguments) -> FeatureExpansion {
    let asked = &args.features;
    if let Some(degree) = asked.polynomial {
        return FeatureExpansion::Polynomial {
            degree,
            interactions: asked.interactions,
        };
    }
    if let Some(features) = asked.fourier {
        let seed = args.settings.seed.unwrap_or(0);
        return FeatureExpansion::Fourier {
            features,
            scale: asked.fourier_scale,
            seed,
        };
    }
    match (asked.pca, asked.svd) {
        (Some(count), _) => FeatureExpansion::Components {
            count,
            centred: true,
        },
        (None, Some(count)) => FeatureExpansion::Components {
            count,
            centred: false,
        },
        (None, None) => FeatureExpansion::None,
    }
}

fn missing(asked: &FeatureArguments) -> Result<MissingNumbers> {
    let indicator = asked.impute.contains(&GapFilling::Indicator);
    let fills: Vec<&GapFilling> = asked
        .impute
        .iter()
        .filter(|filling| **filling != GapFilling::Indicator)
        .collect();
    match fills.as_slice() {
        [] if !indicator => Ok(MissingNumbers::Refused),
        [] | [GapFilling::Mean] => Ok(MissingNumbers::Mean { indicator }),
        [GapFilling::Constant(value)] => Ok(MissingNumbers::Constant {
            value: *value,
            indicator,
        }),
        _ => Err(
            Failure::usage("--impute names two things to fill gaps with")
                .hint("name one of mean and constant=V"),
        ),
    }
}

fn words(args: &FitArguments) -> Result<WordSteps> {
    let asked = &args.features;
    let stop_words = match &asked.stop_words {
        None => StopWords::None,
        Some(path) if path == Path::new("none") => StopWords::None,
        Some(path) if path == Path::new("english") => StopWords::English,
        Some(path) => {
            let words = list::read(path)?;
            StopWords::Listed(words.iter().map(|word| word.trim().to_owned()).collect())
        }
    };
    let (least, most) = asked.ngrams.unwrap_or((1, 1));
    let analyzer = TextAnalyzer::new(asked.analyzer.into(), least, most, stop_words)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let weighting = asked.tfidf.then_some(TermWeighting {
        sublinear: asked.sublinear,
        smooth: true,
        normalised: asked.norm == NormName::L2,
    });
    let steps = WordSteps {
        analyzer,
        least_rows: asked.min_df,
        most_rows: asked.max_df,
        weighting,
    };
    if args.text.is_empty() && steps != WordSteps::default() {
        return Err(Failure::usage(
            "steps for words are asked for, and no column is read as words",
        )
        .hint("name the columns with --text"));
    }
    let has_limits = steps.least_rows.is_some() || steps.most_rows.is_some();
    if has_limits && (args.hash.is_some() || args.vocab_file.is_some()) {
        return Err(Failure::usage(
            "--min-df and --max-df choose among words that are learned from the rows",
        )
        .hint("leave them out, or --hash and --vocab-file"));
    }
    Ok(steps)
}
