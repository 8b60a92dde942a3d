//! The options of one combination: a model family, its features, weights, storage, and the methods
//! that it forgets by.

use super::table::{Shape, Target};
use crate::Dice;

/// The options of a fit and the methods that its forgets draw from.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    /// Number of rows of the first fit.
    pub(crate) rows: u64,
    /// The options of `efface fit` beside the file and the output.
    pub(crate) fit: Vec<String>,
    /// The methods of `efface forget`.
    pub(crate) methods: Vec<&'static str>,
    /// The parameters are drawn with noise, so that two fits differ.
    pub(crate) has_noise: bool,
    /// Random choices follow from positions of rows in the file, so that a fit of a file without
    /// the rows that left is another model.
    pub(crate) follows_from_positions: bool,
}

/// A model family on the command line.
struct FamilyChoice {
    options: &'static [&'static str],
    target: Target,
    methods: &'static [&'static str],
    /// Products, components and scales make sense for it.
    is_linear: bool,
    /// Classes may be given weights.
    weighs_classes: bool,
    /// It may be trained in shards.
    may_shard: bool,
}

const RIDGE: &[&str] = &[
    "auto",
    "retrain",
    "exact",
    "newton",
    "influence",
    "projection_residual",
    "summation",
];
const CLASSIFIER: &[&str] = &[
    "auto",
    "retrain",
    "newton",
    "influence",
    "projection_residual",
    "warm_start",
    "delta_grad",
];
const PENALISED: &[&str] = &["auto", "retrain", "newton", "warm_start"];
const BAYES: &[&str] = &["auto", "retrain", "summation"];

impl FamilyChoice {
    const fn linear(
        options: &'static [&'static str],
        target: Target,
        methods: &'static [&'static str],
    ) -> Self {
        Self {
            options,
            target,
            methods,
            is_linear: true,
            weighs_classes: matches!(target, Target::Class(_)),
            may_shard: true,
        }
    }

    const fn counting(
        options: &'static [&'static str],
        target: Target,
        methods: &'static [&'static str],
    ) -> Self {
        Self {
            is_linear: false,
            weighs_classes: false,
            ..Self::linear(options, target, methods)
        }
    }
}

const FAMILIES: [FamilyChoice; 14] = [
    FamilyChoice::linear(&["--model", "ridge"], Target::Number, RIDGE),
    FamilyChoice::linear(&["--model", "ridge", "--classify"], Target::Class(2), RIDGE),
    FamilyChoice::linear(&["--model", "ridge", "--classify"], Target::Class(4), RIDGE),
    FamilyChoice::linear(&["--model", "logistic"], Target::Class(2), CLASSIFIER),
    FamilyChoice::linear(&["--model", "softmax"], Target::Class(3), CLASSIFIER),
    FamilyChoice::linear(&["--model", "svm"], Target::Class(3), PENALISED),
    FamilyChoice::linear(&["--model", "poisson"], Target::Count, PENALISED),
    FamilyChoice::counting(
        &["--model", "naive-bayes", "--likelihood", "multinomial"],
        Target::Class(3),
        BAYES,
    ),
    FamilyChoice::counting(
        &["--model", "naive-bayes", "--likelihood", "complement"],
        Target::Class(3),
        BAYES,
    ),
    FamilyChoice::counting(
        &["--model", "naive-bayes", "--likelihood", "bernoulli"],
        Target::Class(3),
        BAYES,
    ),
    FamilyChoice::counting(
        &["--model", "naive-bayes", "--likelihood", "gaussian"],
        Target::Class(3),
        BAYES,
    ),
    FamilyChoice {
        may_shard: false,
        ..FamilyChoice::counting(
            &["--model", "kmeans", "--clusters", "3", "--cell", "0.5"],
            Target::None,
            &["auto", "retrain", "q_kmeans"],
        )
    },
    FamilyChoice {
        may_shard: false,
        ..FamilyChoice::counting(
            &["--model", "kmeans", "--clusters", "3", "--tree", "1x4"],
            Target::None,
            &["auto", "retrain", "dc_kmeans"],
        )
    },
    FamilyChoice {
        may_shard: false,
        ..FamilyChoice::linear(
            &["--model", "logistic", "--epsilon", "1", "--delta", "1e-5"],
            Target::Class(2),
            &["auto", "retrain"],
        )
    },
];

impl Plan {
    /// Draws a combination.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let family = &FAMILIES[dice.below(FAMILIES.len() as u64) as usize];
        let one_in = |dice: &mut Dice, count: u64| dice.below(count) == 0;
        let has_noise = family.options.contains(&"--epsilon");
        let is_count = family.options.contains(&"multinomial")
            || family.options.contains(&"complement")
            || family.options.contains(&"bernoulli");
        let clusters = family.target == Target::None;
        let shape = Shape {
            numbers: 1 + dice.below(4) as usize,
            is_count,
            has_gaps: one_in(dice, 4),
            has_level: !clusters && !one_in(dice, 3),
            has_text: !clusters && one_in(dice, 3),
            target: family.target,
        };
        let mut fit: Vec<String> = family.options.iter().map(|&word| word.to_owned()).collect();
        let mut methods = family.methods.to_vec();
        let mut add = |words: &[&str]| fit.extend(words.iter().map(|&word| word.to_owned()));
        add(&["--id", "id", "--subject", "person"]);
        if family.target != Target::None {
            add(&["--target", "y"]);
        }
        // A column is either one feature for each level or the mean target of its level.
        let encodes_target = shape.has_level && family.is_linear && one_in(dice, 5);
        if shape.has_text {
            let numbers: Vec<String> = (0..shape.numbers).map(|n| format!("n{n}")).collect();
            add(&["--text", "text", "--numeric", &numbers.join(",")]);
            if shape.has_level && !encodes_target {
                add(&["--categorical", "level"]);
            }
            text_options(dice, &mut add);
        }
        if shape.has_gaps {
            let how = ["mean", "constant=2", "mean,indicator"];
            add(&["--impute", how[dice.below(3) as usize]]);
        }
        let mut may_expand = family.is_linear && !has_noise;
        if encodes_target {
            add(&["--target-encode", "level"]);
            may_expand = one_in(dice, 2);
        }
        if !is_count && one_in(dice, 2) {
            let scale = ["standard", "minmax"];
            add(&["--scale", scale[dice.below(2) as usize]]);
        }
        if may_expand {
            expansion(dice, &mut add);
        }
        if one_in(dice, 3) {
            add(&["--weight", "weight"]);
        } else {
            add(&["--ignore", "weight"]);
        }
        if family.weighs_classes && !has_noise && one_in(dice, 3) {
            add(&["--class-weight", "balanced"]);
        }
        if family.is_linear && !has_noise {
            match dice.below(6) {
                0 => add(&["--lambda", "auto"]),
                1 => add(&["--lambda", "0.01"]),
                2 => add(&["--no-intercept"]),
                _ => {}
            }
            let storage = ["auto", "factor", "iterative"];
            let is_ridge = family.options.contains(&"ridge");
            let curvature = storage[dice.below(3) as usize];
            let accepts =
                is_ridge || (family.methods.contains(&"influence") && curvature != "factor");
            if accepts {
                add(&["--curvature", curvature]);
            }
            if !is_ridge && one_in(dice, 2) {
                add(&["--tolerance", "1e-8"]);
            }
            if family.methods.contains(&"influence") {
                // The cases run side by side, one on each processor.
                add(&["--threads", "1"]);
            }
        }
        let is_sharded = family.may_shard && one_in(dice, 5);
        if is_sharded {
            add(&["--sisa", ["2x2", "3x1"][dice.below(2) as usize]]);
            methods = vec!["auto", "retrain", "sisa"];
        }
        if one_in(dice, 8) {
            add(&["--encrypt"]);
        }
        if one_in(dice, 5) {
            add(&["--memory", "32K"]);
        }
        Self {
            shape,
            rows: 30 + dice.below(120),
            fit,
            methods,
            has_noise,
            follows_from_positions: is_sharded || clusters,
        }
    }
}

/// Draws the options of texts.
fn text_options(dice: &mut Dice, add: &mut impl FnMut(&[&str])) {
    match dice.below(5) {
        0 => add(&["--tfidf"]),
        1 => add(&["--tfidf", "--norm", "none", "--sublinear"]),
        2 => add(&["--vocab", "5"]),
        3 => add(&["--hash", "16"]),
        _ => add(&["--min-df", "2"]),
    }
}

/// Draws products, random features or components of the columns, or none of them.
fn expansion(dice: &mut Dice, add: &mut impl FnMut(&[&str])) {
    match dice.below(12) {
        0 => add(&["--polynomial", "2"]),
        1 => add(&["--polynomial", "2", "--interactions"]),
        2 => add(&["--fourier", "6"]),
        3 => add(&["--pca", "2"]),
        4 => add(&["--svd", "2"]),
        _ => {}
    }
}
